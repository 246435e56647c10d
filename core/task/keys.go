package task

import (
	"strconv"

	"mimikit/core/channel"
)

// fixedKeys is how many fixed gives.
var fixedKeys = len(fixed(channel.Keys{}, 0))

// fixed are the keys that every script of a partition is given, in the order of
// bind in lua/rows.lua.
func fixed(k channel.Keys, p int) []string {
	of := k.In(p, "t:")
	return []string{
		of + "rows", of + "state", of + "index", of + "queue", of + "order", of + "ready", of + "parked", of + "deferred",
		of + "runs", of + "load", of + "ended", of + "cascade",
		k.Stream(p, channel.WorkerResult), k.Stream(p, channel.SupervisorEvent), k.In(p, string(channel.Feedback)),
		k.Stops(p),
	}
}

// fenced are the keys of a script of our own: the commit number, the fixed keys,
// and more.
func fenced(k channel.Keys, p int, more ...string) []string {
	return append(append([]string{k.Commits(p)}, fixed(k, p)...), more...)
}

func rowsKey(k channel.Keys, p int) string  { return k.In(p, "t:rows") }
func stateKey(k channel.Keys, p int) string { return k.In(p, "t:state") }
func indexKey(k channel.Keys, p int) string { return k.In(p, "t:index") }
func endedKey(k channel.Keys, p int) string { return k.In(p, "t:ended") }

// waitingKeys hold one member each for every task that is pending: as a head, as one
// at its cap, or behind.
func waitingKeys(k channel.Keys, p int) []string {
	return []string{k.In(p, "t:ready"), k.In(p, "t:parked"), k.In(p, "t:queue")}
}

func runsKey(k channel.Keys, p int) string { return k.In(p, "t:runs") }

// claimsKey remembers the last claim of each pool. Hash: claimer → "seq ms token …".
func claimsKey(k channel.Keys, p int) string { return k.In(p, "t:claims") }

// sweeperKey says who sweeps the partition. Hash: who, until (ms).
func sweeperKey(k channel.Keys, p int) string { return k.In(p, "t:sweeper") }

// storagesKey says when storages were last mounted. Hash: storage → ms, "" → when
// that was looked at. It is there while tasks wait for a storage.
func storagesKey(k channel.Keys, p int) string { return k.In(p, "t:storages") }

// keyOf names a key of one task.
type keyOf func(k channel.Keys, p int, id string) string

// The texts of a task that are too long for its row, or that change often. String;
// the progress is a list.
func promptKey(k channel.Keys, p int, id string) string     { return k.In(p, "t:prompt:"+id) }
func outputKey(k channel.Keys, p int, id string) string     { return k.In(p, "t:output:"+id) }
func checkpointKey(k channel.Keys, p int, id string) string { return k.In(p, "t:checkpoint:"+id) }
func progressKey(k channel.Keys, p int, id string) string   { return k.In(p, "t:progress:"+id) }

// signals is the pub/sub channel on which scripts say what is worth a look:
// "wake partition", with or without a class and a score for each new head; "sweep
// partition"; "cancel id". What is lost there is found
// by looking now and then.
func signals(k channel.Keys) string { return k.Prefix + ":t:signals" }

// opening are the first arguments of an op of lua/extension.lua.
func opening(k channel.Keys, p int, op string) []string {
	return []string{op, signals(k), strconv.Itoa(p)}
}
