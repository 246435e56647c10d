package channel

import (
	"fmt"
	"slices"

	"mimikit/core/chat"
)

// road is one channel: who reads it, and what it carries.
type road struct {
	name     Name
	group    string
	external bool // written by others than the owner, so it is waited on
	decode   Decoder
}

// Every group has one consumer, which the scripts call "owner". Ownership is
// decided by the lease, so a new owner finds everything pending under that name.

// roads lists the channels in the order in which scripts number them from 1.
// The files stand behind them.
var roads = []road{
	{UserInput, "teller", true, DecodeJSON[chat.UserInput]},
	{WorkerResult, "teller", true, DecodeJSON[chat.TaskResult]},
	{ThinkerDecision, "teller", false, DecodeJSON[chat.ThinkerDecision]},
	{TellerDigest, "thinker", false, DecodeJSON[chat.TellerDigest]},
	{TellerReply, "deliver", false, DecodeJSON[chat.Reply]},
	{SupervisorEvent, "supervisor", true, DecodeJSON[chat.TaskResult]},
}

// files are the streams that no loop reads: what stands there is for people.
// Scripts number them after the roads.
var files = []Name{dead, Feedback}

// dead is the stream of dead letters.
const dead Name = "dead"

// roadNumber is a channel's number in the scripts, 0 when there is none.
func roadNumber(n Name) int {
	for i := range roads {
		if roads[i].name == n {
			return i + 1
		}
	}
	if i := slices.Index(files, n); i >= 0 {
		return len(roads) + 1 + i
	}
	return 0
}

// isRoad reports whether a loop may read the channel.
func isRoad(n Name) bool { i := roadNumber(n); return i > 0 && i <= len(roads) }

// tables lists the tables in the order in which scripts number them from 1.
var tables = []Table{Attempts, PostTable, LastRun, Storages}

func tableNumber(t Table) int {
	for i, known := range tables {
		if known == t {
			return i + 1
		}
	}
	return 0
}

func knownTables(puts []Put) error {
	for _, p := range puts {
		if tableNumber(p.Table) == 0 {
			return fmt.Errorf("there is no table %q", p.Table)
		}
	}
	return nil
}
