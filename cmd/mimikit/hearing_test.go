package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/adapters/inbox"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

// A listening is a hearing whose door keeps what comes through it.
type listening struct {
	t  *testing.T
	c  chat.Conversation
	st *question.Store
	h  hearing
	d  *keptDoor
	n  int
}

type keptDoor struct {
	inbox.Door
	inputs []string
	told   map[string]string // :: commit → text
}

func (d *keptDoor) Ingest(_ context.Context, in channel.Input) (channel.Accepted, error) {
	d.inputs = append(d.inputs, in.Value.Text)
	return channel.Accepted{InputID: "i"}, nil
}

func (d *keptDoor) Publish(_ context.Context, commit string, _ time.Time, conversation string, p channel.Publish) error {
	r := p.Value.(*chat.Reply)
	if p.To != channel.TellerReply || conversation != r.Conversation.Key() || r.Kind != chat.ReplyNotice || len(r.InputIDs) != 1 || r.ReplyTo == "" {
		return errors.New("published to nobody")
	}
	if "which/"+p.Heard != commit {
		return errors.New("the message is not heard by it")
	}
	if d.told[commit] != "" {
		return channel.ErrHeard
	}
	d.told[commit] = r.Text
	return nil
}

var (
	hearAnn = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	hearBob = chat.Author{ID: "U2", Name: "Bob", Role: chat.RoleOperator}
)

func hear(t *testing.T, s *store.Store, c chat.Conversation) *listening {
	t.Helper()
	keys := channel.Keys{Prefix: storetest.Prefix(t), Partitions: 1}
	st, err := question.New(question.Options{Issuer: question.Issuer{Tasks: &task.Issuer{Keys: keys}}, Client: s.Client})
	if err != nil {
		t.Fatal(err)
	}
	e := &listening{t: t, c: c, st: st, d: &keptDoor{told: map[string]string{}}}
	e.h = hearing{Door: e.d, questions: st, asks: func(_ context.Context, note string) (string, error) { return "post-of-" + note, nil }}
	return e
}

// ask asks Ann, whether she allows something or what is to be done.
func (e *listening) ask(risky bool, timeout time.Duration) question.Question {
	e.t.Helper()
	d := question.Draft{Conversation: e.c, Text: "Where to?\n\nI must know.", Options: []string{"staging", "production"}, Default: "staging", AskedTo: hearAnn, Timeout: timeout}
	if risky {
		d.Text, d.Options, d.Default, d.OnlyOptions = "May I?\n\n```\nrm -rf old\n```", []string{"Allow once", "Refuse"}, "Refuse", true
	}
	q, err := e.st.Ask(e.t.Context(), d)
	if err != nil {
		e.t.Fatal(err)
	}
	return q
}

func (e *listening) press(q question.Question, who chat.Author) {
	e.t.Helper()
	if _, _, err := e.st.Answer(e.t.Context(), q, question.Answer{By: who, Text: q.Options[0], Option: q.Options[0], How: question.ByButton, At: time.Now()}); err != nil {
		e.t.Fatal(err)
	}
}

// says lets somebody say something, and gives what it was: "talk", "which?" or the
// option that it chose of a question.
func (e *listening) says(who chat.Author, text, replyTo string, at time.Time) string {
	e.t.Helper()
	e.n++
	talk, told := len(e.d.inputs), len(e.d.told)
	open, err := e.st.Open(e.t.Context(), e.c)
	if err != nil {
		e.t.Fatal(err)
	}
	in := channel.Input{Value: chat.UserInput{
		ID: "i", Conversation: e.c, Author: who, Text: text, Addressed: true, At: at, ReplyTo: replyTo, Message: "m",
	}, At: at, Dedupe: strings.Repeat("x", e.n)}
	if _, err := e.h.Ingest(e.t.Context(), in); err != nil {
		e.t.Fatal(err)
	}
	switch {
	case len(e.d.inputs) > talk:
		return "talk"
	case len(e.d.told) > told:
		return "which?"
	}
	for _, q := range open {
		now, err := e.st.Get(e.t.Context(), q.ID)
		if err != nil {
			e.t.Fatal(err)
		}
		if now.Status == question.Answered {
			return now.Answer
		}
	}
	return "nothing"
}

var hearPlaces = map[string]chat.Conversation{
	"thread": {Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1.2"},
	"direct": {Platform: "slack", Workspace: "T1", Place: "D1"},
}

// What was said before a risky call was shown allows nothing.
func TestAnApprovalIsNotAnsweredByWhatWasSaidBefore(t *testing.T) {
	t.Parallel()
	for name, c := range hearPlaces {
		for _, text := range []string{"1", "allow once"} {
			e := hear(t, storetest.Mini(t), c)
			q := e.ask(true, time.Hour)
			if got := e.says(hearAnn, text, "", q.CreatedAt.Add(-50*time.Second)); got != "talk" {
				t.Errorf("%s: %q of 50 s before the question counts as %q", name, text, got)
			}
			if got := e.says(hearAnn, text, "", q.CreatedAt.Add(time.Second)); got != "Allow once" {
				t.Errorf("%s: %q of afterwards counts as %q", name, text, got)
			}
		}
	}
}

// Nor does what was said before its post was there to be read, however long that waited
// for its platform. With a reply to the post it can be said at any time.
func TestAnApprovalIsNotAnsweredBeforeItIsShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		post  string
		shown time.Duration // after it was asked; 0: nobody noted it
		said  time.Duration
		want  string
	}{
		"not posted yet":           {"", 0, 10 * time.Second, "which?"},
		"said while it was posted": {"p", 30 * time.Second, 10 * time.Second, "which?"},
		"said afterwards":          {"p", 30 * time.Second, 31 * time.Second, "Allow once"},
		"posted by an older build": {"p", 0, 10 * time.Second, "Allow once"},
	} {
		e := hear(t, storetest.Mini(t), hearPlaces["thread"])
		q := e.ask(true, time.Hour)
		e.h.asks = func(_ context.Context, note string) (string, error) {
			switch {
			case note == questionNote(q.ID):
				return c.post, nil
			case note == shownNote(q.ID) && c.shown > 0:
				return q.CreatedAt.Add(c.shown).Format(time.RFC3339Nano), nil
			}
			return "", nil
		}
		if got := e.says(hearAnn, "1", "", q.CreatedAt.Add(c.said)); got != c.want {
			t.Errorf("%s: counts as %q, want %q", name, got, c.want)
		}
	}
}

// Where more than one question is open, bare words allow nothing and refuse nothing,
// whichever was asked first: they might be meant for another. A reply to the question's
// post can mean nothing else.
func TestBareWordsDoNotAllowWhereMoreIsOpen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, c := range hearPlaces {
			for _, first := range []bool{true, false} {
				e := hear(t, s, c)
				var q, other question.Question
				if first {
					q, other = e.ask(true, time.Hour), e.ask(false, time.Hour)
				} else {
					other, q = e.ask(false, time.Hour), e.ask(true, time.Hour)
				}
				now := q.CreatedAt.Add(10 * time.Second)
				for _, text := range []string{"1", "2.", "allow once", "Refuse!"} {
					if got := e.says(hearAnn, text, "", now); got != "which?" {
						t.Errorf("%s, approval first %v: %q counts as %q", name, first, text, got)
					}
				}
				said := e.d.told["which/x"]
				for _, want := range []string{"“1”", "May I?…", "Where to?…", "!answer " + q.ID, "!answer " + other.ID, "1. Allow once, 2. Refuse", "1. staging, 2. production"} {
					if !strings.Contains(said, want) {
						t.Errorf("it does not say %q:\n%s", want, said)
					}
				}
				// To whom nothing was put it is talk, and so is what is no option.
				if got := e.says(hearBob, "1", "", now); got != "talk" {
					t.Errorf("Bob's counts as %q", got)
				}
				if got := e.says(hearAnn, "allow it, please", "post-of-"+questionNote(q.ID), now); got != "talk" {
					t.Errorf("other words count as %q", got)
				}
				if got := e.says(hearAnn, "2", "post-of-"+questionNote(other.ID), now); got != "production" {
					t.Errorf("a reply to the other counts as %q", got)
				}
				if got := e.says(hearAnn, "1", "post-of-"+questionNote(q.ID), now); got != "Allow once" {
					t.Errorf("a reply counts as %q", got)
				}
			}
		}
	})
}

// Words that no risky question takes still answer the other one.
func TestAnApprovalIsInNobodysWay(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		e := hear(t, storetest.Mini(t), hearPlaces["thread"])
		e.ask(!first, time.Hour)
		q := e.ask(first, time.Hour)
		if got := e.says(hearAnn, "Production", "", q.CreatedAt.Add(time.Second)); got != "production" {
			t.Errorf("approval last %v: counts as %q", first, got)
		}
	}
}

// A question that was closed a moment ago is one that somebody may still mean, unless
// they closed it themselves and know.
func TestBareWordsDoNotAllowWhereMoreWasOpen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, c := range map[string]struct {
			close func(e *listening, other question.Question)
			after time.Duration
			want  string
		}{
			"withdrawn":          {func(e *listening, x question.Question) { _ = e.st.Withdraw(e.t.Context(), x, "the task is over") }, 10 * time.Second, "which?"},
			"withdrawn long ago": {func(e *listening, x question.Question) { _ = e.st.Withdraw(e.t.Context(), x, "the task is over") }, 2 * time.Minute, "Allow once"},
			"answered by herself": {
				func(e *listening, x question.Question) { e.press(x, hearAnn) }, 10 * time.Second, "Allow once",
			},
			"answered by herself in the same breath": {
				func(e *listening, x question.Question) { e.press(x, hearAnn) }, time.Second, "which?",
			},
			// As when a platform delivers it late, or again: it was said while both were open.
			"answered after it was said": {func(e *listening, x question.Question) { e.press(x, hearAnn) }, -time.Millisecond, "which?"},
		} {
			e := hear(t, s, hearPlaces["thread"])
			other := e.ask(false, time.Hour)
			e.ask(true, time.Hour)
			said := time.Now()
			c.close(e, other)
			now, err := e.st.Get(t.Context(), other.ID)
			if err != nil {
				t.Fatal(err)
			}
			at := now.AnsweredAt.Add(c.after)
			if c.after < 0 {
				at = said
			}
			if got := e.says(hearAnn, "1", "", at); got != c.want {
				t.Errorf("%s: counts as %q, want %q", name, got, c.want)
			}
		}
	})
}

// Bare words that reply to another post than the question's may be about that one.
func TestAReplyToSomethingElseAllowsNothing(t *testing.T) {
	t.Parallel()
	e := hear(t, storetest.Mini(t), hearPlaces["thread"])
	q := e.ask(true, time.Hour)
	if got := e.says(hearAnn, "1", "another-post", q.CreatedAt.Add(time.Second)); got != "which?" {
		t.Errorf("counts as %q", got)
	}
}

// A message that comes twice is told once how to say what it means.
func TestAskWhichOnce(t *testing.T) {
	t.Parallel()
	e := hear(t, storetest.Mini(t), chat.Conversation{Platform: "console", Workspace: "local", Place: "t"})
	q := e.ask(true, time.Hour)
	e.ask(true, time.Hour)
	var ids []string
	for i := range 2 {
		got, err := e.h.Ingest(t.Context(), channel.Input{Dedupe: "d", Value: chat.UserInput{Conversation: e.c, Author: hearAnn, Text: "1", Addressed: true, Message: "m", At: q.CreatedAt.Add(time.Minute)}})
		if err != nil {
			t.Fatal(err)
		}
		if got.Known != (i == 1) {
			t.Errorf("delivery %d is known: %v", i, got.Known)
		}
		ids = append(ids, got.InputID)
	}
	if len(e.d.told) != 1 || !slices.Equal(ids, []string{channel.InputID("d"), channel.InputID("d")}) {
		t.Errorf("told %q, ids %q", e.d.told, ids)
	}
	if text := e.d.told["which/d"]; !strings.Contains(text, "`/answer "+q.ID+"`") {
		t.Errorf("told %s", text)
	}
}
