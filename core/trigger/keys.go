package trigger

import (
	"net/url"
	"strconv"

	"mimikit/core/channel"
	"mimikit/core/task"
)

func rowsKey(k channel.Keys, p int) string  { return k.In(p, "g:rows") }
func stateKey(k channel.Keys, p int) string { return k.In(p, "g:state") }
func indexKey(k channel.Keys, p int) string { return k.In(p, "g:index") }
func dueKey(k channel.Keys, p int) string   { return k.In(p, "g:due") }

// own are the keys that every script of a partition is given, in the order of bind
// in lua/rows.lua.
func own(k channel.Keys, p int) []string {
	return []string{
		rowsKey(k, p), stateKey(k, p), indexKey(k, p), dueKey(k, p), k.In(p, "g:gone"),
		k.Stream(p, channel.WorkerResult), k.Stops(p),
	}
}

// fixed are own, and those of the tasks of the partition.
func fixed(k channel.Keys, p int) []string { return append(own(k, p), task.Keys(k, p)...) }

// signals is the pub/sub channel on which scripts say that something may be due
// earlier than was known: the number of the partition. What is lost there is found
// by looking now and then.
func signals(k channel.Keys) string { return k.Prefix + ":g:signals" }

// opening are the first arguments of an op of lua/extension.lua.
func opening(k channel.Keys, p int, op string) []string {
	return []string{op, signals(k), strconv.Itoa(p), task.Signals(k)}
}

// class is who can look at a trigger: who has the storage of its files, or for ""
// anybody.
func class(storage string) string { return "@" + url.QueryEscape(storage) }
