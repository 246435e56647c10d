package thinker

import (
	"fmt"
	"strings"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
)

// maxFeedback bounds the text of one piece of feedback, in bytes.
const maxFeedback = 4 << 10

// A Commit is what a turn changes, all at once or not at all. Effects add to it.
type Commit struct {
	Turn   action.Turn
	Digest *chat.TellerDigest
	// Effects are what the step gives back. An effect appends to it.
	Effects channel.Effects

	gists map[string]string // :: task id → what is kept of its result
}

// An Effect is what an action wants of the turn's commit. It is applied when the
// model has decided; the actions' functions, which may run for nothing, only make
// it.
type Effect struct {
	// Said is what a person is told of it when the model says nothing itself: a
	// sentence.
	Said string
	// Into adds it to the commit. An error fails the turn.
	Into func(c *Commit) error
}

func (t *Thinker) newCommit(w *channel.Work, d *chat.TellerDigest) *Commit {
	conv, _ := chat.ParseConversation(w.Conversation) // a key that is none is told of when the reply is worded
	var authors []chat.Author
	var requester chat.Author
	for _, in := range d.Inputs {
		authors = append(authors, in.Author)
	}
	for _, r := range d.Results {
		requester = r.Requester
	}
	turn := action.NewTurn(conv, authors, requester, t.now(w), w.Entries[0].TraceID)
	turn.Traceparent = w.Traceparent
	return &Commit{Turn: turn, Digest: d, gists: map[string]string{}}
}

// commit applies what the model asked for, and gives the words of the decision.
func (t *Thinker) commit(c *Commit, got action.Result) (string, error) {
	var said []string
	for _, wanted := range got.Effects {
		for _, v := range wanted.Values {
			e, ok := v.(Effect)
			if !ok {
				return "", fmt.Errorf("action %s wants a %T, which the thinker cannot do", wanted.Call.Name, v)
			}
			if err := e.Into(c); err != nil {
				return "", fmt.Errorf("action %s: %w", wanted.Call.Name, err)
			}
			if e.Said != "" {
				said = append(said, e.Said)
			}
		}
	}
	switch {
	case got.Text != "":
		return got.Text, nil
	case len(said) > 0:
		return strings.Join(said, "\n"), nil
	}
	return "Done.", nil
}

// feedback files a piece of feedback with the turn's own marks.
func (c *Commit) feedback(f chat.Feedback) {
	f.Conversation, f.DigestID, f.TraceID = c.Turn.Conversation, c.Digest.ID, c.Turn.TraceID
	f.Author, f.At = c.Turn.OnBehalfOf, c.Turn.Now
	c.Effects.Publish = append(c.Effects.Publish, channel.Publish{To: channel.Feedback, Value: &f, Kind: string(f.Kind)})
}
