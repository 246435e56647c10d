// Package worker does the work of background tasks.
//
// A [Standard] runs tasks of the standard profile: a model that takes one action
// after another, on files, a shell and web pages, until it responds with a
// result. An [Expert] hands a task to an agent on the command line, such as Codex,
// which works in the conversation's workspace. Package task decides which task
// runs where and what becomes of it; a worker only does one run of one task, and
// may be cut off at any moment.
//
// It is promised that
//
//   - after each action a checkpoint is kept, so that a run on another node goes
//     on from there; an action that a crash cut off may be done again, never one
//     whose outcome was kept;
//   - a run ends soon after its context, and leaves no process behind;
//   - files stay in the conversation's workspace, commands in a sandbox, and web
//     pages are public ones; where one of these is not to be had the model is told
//     so, and why, and goes on without it;
//   - a call that needs somebody's word ([Approvals]) is carried out only when it is,
//     byte for byte, the one that was shown and allowed; silence is a refusal;
//   - rounds, time and output are bounded over all runs of a task together where
//     that is meant, and what was cut says so.
package worker
