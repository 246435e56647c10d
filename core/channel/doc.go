// Package channel is the heart of Mimikit: the durable roads between its loops.
//
// It exists so that a loop can be written as a function from entries to effects
// and know nothing of Redis, nodes or crashes. A channel is a Redis Stream for
// each partition with one consumer group; a conversation always hashes to the
// same partition. At any time at most one node owns a partition. The owner
// delivers entries to the loops, one step of a conversation and lane at a time,
// and commits what a step gives back: outputs published, history appended, table
// fields set and inputs settled, in one script or not at all.
//
// It promises, for any crash, pause or cut-off of nodes and while Redis keeps
// the writes it acknowledged:
//
//   - An input that was accepted is in its stream once, whichever nodes were
//     offered it, and however often ([Node.Ingest]).
//   - A step's effects are applied once. A step may be run again, so it must have
//     no effects of its own outside, except under a mark ([Work.Mark]).
//   - A node that was paused and replaced changes nothing any more, and takes
//     nothing from its successor: every script checks the token, deliveries too,
//     and a script that reaches Redis late is refused by its number.
//   - Entries of a conversation are taken in the order in which they were
//     accepted, and no conversation waits for the step of another.
//   - An entry that cannot be decoded, or whose step fails MaxAttempts times,
//     becomes a dead letter and its conversation is told; the line goes on.
//   - A settled entry leaves nothing behind.
//
// Where Redis forgets acknowledged writes (a fail-over, an operating system
// crash without AOF always), the partition's commit number falls behind what a
// node has seen. That is logged and counted, memory is dropped and read anew, and
// for five minutes steps are told to look before they act ([Work.Suspect]).
//
// The pending list is the buffer: nothing is kept in memory only, so taking over
// is reading it. Scripts are in lua/, each under a header of its keys, arguments
// and answers.
package channel
