// Package review looks back at what the bot did, for those who run it: a model
// reviews conversations that have gone quiet, and each day is summed up in a
// report.
//
// It exists because what goes wrong in a conversation is seen by the people in it
// and by nobody who could mend it. It is promised that
//
//   - a [Reviewer] costs nobody anything: it begins when nothing has happened in
//     any conversation for a time and nothing is in flight, and stops, within a
//     second or so and without having written anything, when something is;
//   - a conversation is reviewed once for what was said since the last time, however
//     many nodes there are and whenever one of them dies: findings are filed in the
//     script that marks the conversation as reviewed, and that script does nothing
//     when another was first;
//   - what is found leaves its conversation as feedback for admins only, never into
//     a prompt;
//   - [Notes] of tasks that waited long or used much are feedback too; they are no
//     promise, since nothing depends on them;
//   - a [Tally] counts what the ledger and the index of tasks do not, in one small
//     hash a day that ends by itself; each batch is counted once, and what a node
//     that is killed had counted in the last seconds is lost;
//   - a [Reporter] writes a day's report once it is over, whole or not at all, and
//     what was missed while no node ran is written later.
//
// The keys:
//
//	{prefix:p}:review:<conversation>  string  up to which line it was reviewed; ends after KeepMarks
//	prefix:review:last                string  when a review last ended (Unix ms)
//	prefix:report:through             string  the last day whose report was written
//	prefix:tally:<day>                hash    what was counted on a UTC day; ends after usage.Retention
package review
