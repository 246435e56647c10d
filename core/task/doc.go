// Package task is the durable queue of background work: what a turn or a trigger
// wants done, waits here, runs on some node for seconds or days, and comes back to
// its conversation as one result.
//
// It exists so that nobody else has to think of crashes. Whoever wants a task
// spells a call for its own commit ([Issuer]), so that the task is there when the
// turn is, once; whoever does the work writes a function ([Runner]); a [Pool] on
// each node takes, runs and looks after both. All that a task is lies in the
// partition of its conversation, and every change is one script, judged by Redis'
// order. docs/tasks.md has the state chart and says how the order is decided.
//
// It promises, for any crash, pause or cut-off of nodes and while Redis keeps the
// writes it acknowledged:
//
//   - A task goes only along the arrows of the chart. Its end is published once, in
//     the script that ends it, whatever is repeated.
//   - A task is run at least once. A run holds a token; what a run without its task
//     writes is refused. A run that was not heard of for a lease is found by nodes
//     that count its heartbeats on their own clocks, and the task runs again from
//     its last checkpoint. A run that cannot be heard is ended before that.
//   - A clean stop costs no attempt; a failure is retried after a backoff that
//     doubles; the third lapse is the end.
//   - A cancel is durable. What does not run ends at once; what runs is told within
//     a second when the signal reaches its node, with the next heartbeat when not,
//     and ends canceled however it ends. It reaches all that the task has started
//     and will start, also when it was half done by a crash.
//   - Priority is honoured and waiting counts, so nothing starves; a conversation
//     with many tasks takes turns with those that have few.
//   - A task is forgotten a retention after its end, unless a trigger watches it.
//
// Nothing here polls: signals wake, and looks now and then find what a lost signal
// would have told.
package task
