// Package slackfake is a Slack workspace with one app in it, for tests: a server
// that speaks the Web API, Socket Mode, the Events API over HTTP, response URLs
// and file uploads as Slack documents them, and whose people do what a test tells
// them. It knows nothing of the adapter that it is there to try.
//
// It is as strict as Slack where Slack is: tokens are checked, in the header or in
// the form; blocks have their limits; a bot hears its own posts; thread replies do
// not stand in a channel's history; metadata are shown on request only; an envelope
// or a request that is not acknowledged within three seconds comes again, marked
// as a retry; an acknowledgement of 20 KB or more is lost without a word.
//
// And it can be as unkind: it drops sockets, announces to drop them, lets them
// fall silent, refuses calls, limits them, answers nothing after it has done what
// was asked, and forgets events.
package slackfake
