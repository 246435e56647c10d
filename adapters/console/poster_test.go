package console

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mimikit/adapters"
	"mimikit/core/chat"
	"mimikit/core/feed"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	epoch = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	talk  = chat.Conversation{Platform: "console", Workspace: "local", Place: "ann"}
)

// feedOn is a feed on a miniredis of the test's own.
func feedOn(t *testing.T) *feed.Feed {
	t.Helper()
	s := storetest.Mini(t)
	return feed.New(feed.Options{
		Client: s.Client, Blocking: s.Blocking,
		Key: func(conversation string) string { return "{t}:f:" + conversation },
	})
}

func TestSplitReply(t *testing.T) {
	t.Parallel()
	p := NewPoster(nil)
	r := chat.Reply{ID: "r1", Conversation: talk, Kind: chat.ReplyAnswer, Text: "hello", InputIDs: []string{"i1"}, ReplyTo: "m1", CreatedAt: epoch}
	want := []adapters.Part{{ReplyID: "r1", Count: 1, Text: "hello", Kind: chat.ReplyAnswer, ReplyTo: "m1", At: epoch, InputIDs: []string{"i1"}}}
	if got := p.Split(r); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := p.Split(chat.Reply{ID: "r1"}); len(got) != 1 || got[0].Count != 1 {
		t.Errorf("an empty reply has the parts %+v, want one", got)
	}
	r.Text, r.Buttons = "Which one?\n", []chat.Button{{Label: "This", Value: "v1"}, {Label: "That", Value: "v2"}}
	got := p.Split(r)
	if len(got) != 1 || got[0].Text != "Which one?\n\n1. This\n2. That\n" || len(got[0].Buttons) != 2 {
		t.Errorf("a question became %+v", got)
	}
	r.Text = strings.Repeat("A paragraph.\n\n", 5000)
	got = p.Split(r)
	if len(got) != 3 || got[0].Buttons != nil || len(got[2].Buttons) != 2 || got[1].Index != 1 || got[1].Count != 3 || !strings.HasSuffix(got[2].Text, "2. That\n") {
		t.Errorf("a long question became %d parts", len(got))
	}
	if again := p.Split(r); fmt.Sprint(again) != fmt.Sprint(got) {
		t.Error("the same reply gave other parts")
	}
}

// Nothing is lost, nothing is too long, and no piece leaves a fence open.
func TestSplit(t *testing.T) {
	t.Parallel()
	codeBlock := "```go\n" + strings.Repeat("some code\n", 8) + "```\n"
	for _, c := range []struct {
		name, text string
		most       int
		want       []string // nil: only what holds for all
	}{
		{"short", "abc", 100, []string{"abc"}},
		{"empty", "", 100, []string{""}},
		{"just fits", strings.Repeat("x", 100), 100, []string{strings.Repeat("x", 100)}},
		{"paragraphs", "aaaa\naaaa\n\nbbbb\nbbbb\n\ncccc", 20, []string{"aaaa\naaaa", "bbbb\nbbbb\n\ncccc"}},
		{"lines", "aaaa\nbbbb\ncccc\ndddd", 12, []string{"aaaa\nbbbb", "cccc\ndddd"}},
		{"one long word", strings.Repeat("x", 25), 10, []string{strings.Repeat("x", 10), strings.Repeat("x", 10), "xxxxx"}},
		{"never half a rune", strings.Repeat("日", 10), 10, []string{"日日日", "日日日", "日日日", "日"}},
		{"a block of code stays whole", "Look at this here.\nAnd that:\n" + codeBlock, 110, []string{"Look at this here.\nAnd that:", codeBlock}},
		{"a tall block of code is torn", "~~~~ py\n" + strings.Repeat("1234567\n", 8) + "~~~~\n", 56, []string{
			"~~~~ py\n" + strings.Repeat("1234567\n", 5) + "~~~~", "~~~~ py\n" + strings.Repeat("1234567\n", 3) + "~~~~\n",
		}},
		{"empty lines", "\n\n\n" + strings.Repeat("a\n\n\n\n", 10) + strings.Repeat("\n", 30), 20, []string{
			strings.Repeat("a\n\n\n\n", 3) + "a", strings.Repeat("a\n\n\n\n", 3) + "a", "a\n\n\n\na",
		}},
		{"mixed", strings.Repeat("Words here.\n\n"+codeBlock+"- a\n- b\n", 40), 300, nil},
		{"endless fence", "````\n" + strings.Repeat("x ```\n", 400), 200, nil},
		{"a fence that says much", "```" + strings.Repeat("y", 150) + "\n" + strings.Repeat("x\n", 400), 200, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := split(c.text, c.most)
			if c.want != nil && fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			letters := func(s string) int { return strings.Count(s, "x") + strings.Count(s, "o") }
			for i, piece := range got {
				if len(piece) > c.most || piece == "" && c.text != "" || !utf8.ValidString(piece) {
					t.Errorf("piece %d has %d bytes, valid %v; at most %d are allowed", i, len(piece), utf8.ValidString(piece), c.most)
				}
				if c.name == "mixed" && strings.Count(piece, "```")%2 != 0 {
					t.Errorf("piece %d leaves a fence open:\n%s", i, piece)
				}
			}
			if whole := strings.Join(got, "\n"); letters(whole) != letters(c.text) {
				t.Errorf("%d letters became %d", letters(c.text), letters(whole))
			}
		})
	}
}

func TestPost(t *testing.T) {
	t.Parallel()
	f := feedOn(t)
	p := NewPoster(f)
	part := adapters.Part{ReplyID: "r1", Index: 1, Count: 2, Text: "hello", Kind: chat.ReplyStopped, ReplyTo: "m1", At: epoch, InputIDs: []string{"i1"}}
	if id, err := p.Lookup(t.Context(), talk, part); id != "" || err != nil {
		t.Errorf("before it was posted: %q, %v; want nothing", id, err)
	}
	id, err := p.Post(t.Context(), talk, part)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := p.Lookup(t.Context(), talk, part); found != id || err != nil {
		t.Errorf("found %q, %v; want %q", found, err, id)
	}
	other := part
	other.Index = 0
	if found, err := p.Lookup(t.Context(), talk, other); found != "" || err != nil {
		t.Errorf("the other part: %q, %v; want nothing", found, err)
	}
	m, err := f.Missed(t.Context(), talk.Key(), "me", 10)
	if err != nil || len(m.Entries) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	want := feed.Item{ID: "r1/1", Kind: feed.KindNotice, Text: "hello", InputIDs: []string{"i1"}, ReplyTo: "m1", Part: 1, Parts: 2, At: epoch}
	if got := m.Entries[0].Item; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("in the feed is %+v, want %+v", got, want)
	}
	if err := p.Working(t.Context(), talk, "reading"); err != nil {
		t.Error(err)
	}
}

// The outbox must be able to tell "certainly not posted" from "not known".
func TestPostErrors(t *testing.T) {
	t.Parallel()
	s, mini := storetest.MiniRaw(t)
	p := NewPoster(feed.New(feed.Options{Client: s.Client, Key: func(c string) string { return c }}))
	mini.SetError("READONLY You can't write against a read only replica.")
	_, err := p.Post(t.Context(), talk, adapters.Part{ReplyID: "r1"})
	var post *adapters.PostError
	if !errors.As(err, &post) || post.Kind != adapters.RetryPost {
		t.Errorf("refused by Redis: %v, want a PostError to retry", err)
	}
	_ = s.Close()
	if _, err := p.Post(t.Context(), talk, adapters.Part{ReplyID: "r1"}); err == nil || errors.As(err, &post) && post.Kind != adapters.UnknownPost {
		t.Errorf("without a connection: %v, want an error that leaves it open", err)
	}
	if _, err := p.Lookup(t.Context(), talk, adapters.Part{ReplyID: "r1"}); err == nil {
		t.Error("a look-up that could not look gave no error: the part would be posted again")
	}
}
