// Package supervisor is the plain code between tasks and what comes of them. It uses
// no model: what it decides is a function of what stands in Redis and, for conditions
// on files, on the disk.
//
// It has two parts. The loop ([Supervisor.Loop]) hears the entries of
// supervisor-event: a planner's result becomes tasks and triggers, a question or a
// report; an internal result becomes the answer to a condition; the end of a task
// wakes the triggers that wait for it. The clock ([Supervisor.Run]) fires triggers:
// it sleeps until the next one of any partition is due, or something is heard, takes
// what is due, looks at what it waits for and settles it. Every node has a clock;
// what one has taken is left alone by the others for a while, and whoever settles it
// first is the one who did.
//
// It promises, for any crash, pause or cut-off of nodes:
//
//   - A plan is carried out whole or not at all, once, in the commit that settles
//     its result. One that cannot be carried out is reported.
//   - A slot of a trigger fires once, see package trigger; this package adds nothing
//     that must be remembered.
//   - A task that a trigger starts acts on behalf of who asked for the trigger. What
//     it is told of the results that it waited for is quoted as data.
//   - A planner that must know something waits until it is answered; no time runs.
//     Another task that asks whether it may do something is answered with a refusal
//     when nobody who decides that has answered in time, or can be asked.
//   - Conditions are put to a model for one person of one conversation at a time, so
//     that nothing crosses to another, and within the budget.
package supervisor
