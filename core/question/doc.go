// Package question keeps what the bot has asked people until it is answered.
//
// It exists because an answer may take days, and come to any node: a press of a
// button, a text, or nothing until the deadline. A question lies in the partition of
// its conversation. Whoever asks spells a call for its own commit ([Issuer]), so that
// the question is there when its post is; an answer is one script ([Store.Answer]),
// which closes the question and hands the answer on to whoever asked: to the turn,
// as an input of the conversation, or to the task that waits.
//
// It promises, for any crash, pause or cut-off of nodes and while Redis keeps the
// writes it acknowledged:
//
//   - A question is answered once. The first answer counts, by whatever way it came;
//     who comes later is told who was first.
//   - The answer and the closing are one script, and so are the message that it came
//     by and the memory of having heard it.
//   - A deadline is kept by Redis' clock, on any number of nodes, once: the default is
//     taken, or the question withdrawn, and either is said.
//   - Only who was asked can answer.
package question
