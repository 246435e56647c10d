// Package trigger keeps what starts tasks later: again and again, at a time, or
// when something comes true.
//
// It exists so that "every weekday at nine", "tomorrow at noon" and "when that is
// done" outlive every process, and happen once. A trigger lies in the partition of
// its conversation beside the tasks that it starts. What one does next is judged by
// a function of the trigger and of what was seen of the world ([Trigger.Judge]),
// which knows neither clock nor Redis; what it decides is one script ([Store.Settle],
// or a call of an [Issuer] within a commit of core/channel). core/supervisor looks
// and asks; docs/triggers.md tells the rules to people.
//
// It promises, for any crash, pause or cut-off of nodes and while Redis keeps the
// writes it acknowledged:
//
//   - A slot fires once: the planned time of a run, the result that was waited for,
//     the state of the files, the number of the edge. The task and the trigger's new
//     state are one script, judged against the state that the decision was made of;
//     the task's id is made of the trigger and the slot.
//   - What a condition has seen is written only when it fires, so a condition of
//     several parts waits until they hold together. Two things are written without a
//     firing: what files were when the trigger began, and that something which held
//     does not hold any more.
//   - Missed runs are not made up for: what fell due several times fires once.
//   - A trigger has one task at a time. While that is not over, runs are left out and
//     counted, and conditions that come true wait for its end. That task is never a
//     planner's, which ends before the tasks that it sets up.
//   - A trigger that can never fire any more is removed, and its conversation told.
//   - A trigger that is not due costs nothing: the next due one of a partition is
//     known, and whoever waits for it sleeps.
package trigger
