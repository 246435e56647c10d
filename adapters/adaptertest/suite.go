// Package adaptertest tries an adapter against what every platform must keep, as
// tests that all adapters run alike. What differs between platforms stands behind
// a [Rig], which each adapter's own tests implement on a fake of its platform
// (slackfake and discordfake stand below this package).
//
// It checks, each on a rig of its own:
//
//   - hearing: one input for one message, however often and over whatever ways it
//     is delivered; nothing acknowledged before it is stored; conversations that
//     stay what they are; edits, removals, stops; and nothing from those who do
//     not speak to the bot.
//   - showing: every part once and in order; outcomes told apart; a part that may
//     have been posted is found if it was, and not if it was not; nobody rung by
//     what a text says; buttons that carry what they mean.
//   - feedback: seen within a second, gone in the end; and a stop after which
//     nothing is taken in.
//
// The rig's own test has to see to it that no goroutine is left, with a bubble of
// testing/synctest or with goleak.
package adaptertest

import (
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// A Rig is one platform, people on it, and the adapter that is tried. Its methods
// fail the test themselves when they cannot do what they should.
type Rig interface {
	// Lacks says why the platform or its adapter has no such thing; "" is that it
	// has. What needs it is skipped for that reason, and the rig's methods for it
	// are not called.
	Lacks(a Ability) (why string)

	// Listen starts a listener, as a node does that has just been started, and
	// returns when it hears. What nodes share is the same for all listeners of a
	// rig. stop ends it, returns when it has ended, and fails the test when it did
	// not end well. There is one at a time.
	Listen(inbox adapters.Inbox) (stop func())
	// Say makes a person say something, and gives the platform's id of the message.
	Say(s Said) (message string)
	// Redeliver makes the platform deliver a message of Say once more.
	Redeliver(message string)
	// Edit changes the text of a message of Say, in which "@bot" becomes a mention
	// of the bot. Delete removes one.
	Edit(message, text string)
	Delete(message string)

	// Conversation gives one in which the bot may post: with a person alone, or in a
	// thread among people. It is the same each time.
	Conversation(w Where) chat.Conversation
	// Poster gives the poster of the node whose listener runs; while none does, that
	// of another node each time.
	Poster() adapters.Poster
	// Fail makes the next post go wrong, or the one step of it that shows something,
	// and nothing after it.
	Fail(f Failure)
	// Shown lists what the bot has posted in a conversation and is still there,
	// oldest first.
	Shown(c chat.Conversation) []Shown
	// Bells are texts that would ring somebody on this platform if it took them for
	// its own markup.
	Bells() []string

	// Feedback is that of the node whose listener runs.
	Feedback() adapters.Feedback
	// Working reports whether people can see now that the bot works for a
	// conversation.
	Working(c chat.Conversation) bool

	// Pass lets a time go by and then waits until nothing moves any more. A rig
	// whose clock is the real one may let less time pass.
	Pass(d time.Duration)
}

// An Ability is something that not every platform has.
type Ability string

// The abilities.
const (
	HasPlaces    Ability = "places"     // with several people, and threads in them
	HasBots      Ability = "bots"       // others than ours
	HasRedeliver Ability = "redelivery" // of what was not acknowledged, to whoever listens next too
	HasEdits     Ability = "edits"      // and removals
	HasStopWord  Ability = "stop word"  // "stop", said alone, ends the turn
	HasBells     Ability = "bells"      // ways in which a text can ring somebody
	HasButtons   Ability = "buttons"
	HasLosses    Ability = "losses"     // of connections in the middle of a post
	HasRateLimit Ability = "rate limit" // and says for how long
	HasRefusal   Ability = "refusal"    // of a post, for good
	HasSigns     Ability = "signs"      // the listener shows by itself that a message was taken
	HasStatus    Ability = "status"     // work can be shown in a conversation whatever was said there
	HasLapse     Ability = "lapse"      // of what shows work, when nobody renews it
)

// Where something is said.
type Where int

// The places. The zero Where is invalid.
const (
	Direct Where = 1 // to the bot alone
	Place  Where = 2 // where other people are too
)

// Said is something that a person says.
type Said struct {
	In      Where
	Thread  string // the message under which it is said, in a place; a rig makes the thread where one must be made
	Text    string
	Mention bool // it begins with a mention of the bot
	Bot     bool // another bot says it
}

// A Failure is how a post goes wrong.
type Failure int

// The failures. The zero Failure is invalid.
const (
	LoseAnswer Failure = 1 // it is done, and then the connection breaks
	LosePost   Failure = 2 // the connection breaks before it is done, after it was sent
	RateLimit  Failure = 3 // refused; the platform wants to be left alone for RetryIn
	Refuse     Failure = 4 // refused: the bot may not post there
)

// RetryIn is what a platform says with RateLimit.
const RetryIn = 7 * time.Second

// Shown is one message of the bot as it stands on the platform.
type Shown struct {
	ID      string   // as Post gave it
	Text    string   // what a person reads, or what the platform makes it of
	Files   []string // the contents of files that came with it
	Buttons []string // the values of what can be pressed, in order
	Rang    bool     // it rang somebody
}

// Run runs all checks. with makes a rig for one of them, calls try with it, and
// ends everything that the rig began; it calls t.Parallel first.
func Run(t *testing.T, with func(t *testing.T, try func(t *testing.T, r Rig))) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			with(t, func(t *testing.T, r Rig) {
				for _, a := range c.needs {
					if why := r.Lacks(a); why != "" {
						t.Skipf("no %s: %s", a, why)
					}
				}
				c.try(t, r)
			})
		})
	}
}

// A reporter is what a check needs of a testing.T, so that the checks themselves
// can be tried on platforms that are known to be wrong.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

type check struct {
	name  string
	needs []Ability
	try   func(t reporter, r Rig)
}

var checks = append(append(append([]check{}, hearing...), showing...), feedback...)

// await lets time pass until something is so, for up to a quarter of an hour of the rig's time.
func await(t reporter, r Rig, what string, so func() bool) {
	t.Helper()
	r.Pass(0)
	for passed, step := time.Duration(0), 20*time.Millisecond; !so(); passed += step {
		if passed > 15*time.Minute {
			t.Fatalf("no %s within a quarter of an hour", what)
		}
		if passed > 5*time.Second {
			step = time.Second
		}
		r.Pass(step)
	}
}

// settle is as long as anything that may still come needs.
const settle = 5 * time.Second
