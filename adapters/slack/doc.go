// Package slack lets Mimikit live in a Slack workspace: it hears what people say
// to the bot, over Socket Mode or over HTTP, and shows what the bot replies.
//
// It promises:
//
//   - An event is acknowledged only after the inbox has stored what it says, or
//     has refused it, or after a guard has decided that it says nothing to us
//     (see guards.go for the whole list). What cannot be decoded is acknowledged
//     and counted, since Slack would only send it again.
//   - Whatever way a message comes, as a mention, as a message, again after a
//     missed acknowledgement, over another socket, or read back after an outage,
//     it is offered under one key, so that the inbox makes one input of it.
//   - A socket is replaced before it is given up, where Slack announces that it
//     will close it; what a lost one had delivered and nobody acknowledged Slack
//     delivers again.
//   - One call of the poster is at most one visible message. A call is never
//     repeated here; an outcome that is not known is returned as such, and
//     Lookup finds the message by the metadata or the file name it would have.
//   - A reply may be shown while it is worded, if that is switched on. The committed
//     text is the record: whatever was shown of it before is finished with it or
//     removed, by whichever node posts it.
//   - What a person types or what a model writes is never taken for Slack's own
//     markup: a reply cannot ring a channel.
//   - Answers to commands and buttons are given at most once.
//
// What the nodes of a deployment must agree on stands behind the small
// interfaces of cluster.go. [Memory] keeps it within one process.
package slack
