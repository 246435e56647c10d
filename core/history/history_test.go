package history

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

var epoch = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// said is line n of a conversation, its text of the given size.
func said(n, size int) chat.Line {
	text := fmt.Sprintf("line %d ", n)
	if pad := size - len(text); pad > 0 {
		text += strings.Repeat("x", pad)
	}
	return chat.Line{ID: fmt.Sprintf("i%d", n), Role: chat.LineUser, Text: text[:max(size, 1)], At: epoch.Add(time.Duration(n) * time.Second)}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		ctx := context.Background()
		prefix := storetest.Prefix(t)
		key := func(c string) string { return prefix + "{0}:history:" + c }
		h := New(s.Client, key, slog.New(slog.DiscardHandler))
		push := func(t *testing.T, conversation string, values ...any) {
			t.Helper()
			if err := s.Client.RPush(ctx, key(conversation), values...).Err(); err != nil {
				t.Fatal(err)
			}
		}

		t.Run("nothing was said", func(t *testing.T) {
			got, err := h.Window(ctx, "none", Limits{Min: 5, Max: 20})
			if err != nil || len(got) != 0 {
				t.Errorf("got %v, %v", got, err)
			}
		})
		t.Run("oldest first, as it was encoded", func(t *testing.T) {
			want := []chat.Line{
				{ID: "i1", Role: chat.LineUser, Author: chat.Author{ID: "U1", Name: "Ann <a&b>", Role: chat.RoleUser}, Text: "hi\n\"ça\" 你好", At: epoch},
				{ID: "r1", Role: chat.LineAssistant, Author: chat.Author{Name: "Mimi", Bot: true}, Text: "hello", Note: "stopped", At: epoch.Add(time.Second)},
			}
			push(t, "order", Encode(want[0]), Encode(want[1]))
			got, err := h.Window(ctx, "order", Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
		t.Run("what cannot be decoded is skipped and counted", func(t *testing.T) {
			before := h.Undecodable()
			push(t, "bad", "{", Encode(said(1, 20)), `{"id":"x"}`, "null", Encode(said(2, 20)), "")
			got, err := h.Window(ctx, "bad", Limits{Min: 2, Max: 20})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 2 || got[0].ID != "i1" || got[1].ID != "i2" {
				t.Errorf("got %v", got)
			}
			if n := h.Undecodable() - before; n != 4 {
				t.Errorf("counted %d, want 4", n)
			}
		})
		t.Run("a line that is there twice is given once, a task's second end is not the same", func(t *testing.T) {
			again := said(1, 20)
			again.At = again.At.Add(time.Hour)
			push(t, "twice", Encode(said(1, 20)), Encode(said(2, 20)), Encode(said(1, 20)), Encode(again))
			got, err := h.Window(ctx, "twice", Limits{})
			if err != nil || len(got) != 3 {
				t.Errorf("got %v, %v; want 3 lines", got, err)
			}
		})
		t.Run("a long history gives its newest lines", func(t *testing.T) {
			var values []any
			for n := range 205 {
				values = append(values, Encode(said(n, 20)))
			}
			push(t, "long", values...)
			got, err := h.Window(ctx, "long", Limits{Min: 20, Max: 100})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 80 || got[0].ID != "i125" || got[79].ID != "i204" {
				t.Errorf("got %d lines from %s on; want 80 from i125 on", len(got), got[0].ID)
			}
		})
		t.Run("what was taken back is not read", func(t *testing.T) {
			for _, v := range stored(input("i1", chat.KindMessage, "m1", "a secret", 1), input("i2", chat.KindMessage, "m2", "two", 2), input("x1", chat.KindDelete, "m1", "", 3)) {
				push(t, "deleted", v)
			}
			p, err := h.Read(ctx, "deleted", Limits{})
			if got := strings.Join(readings(p.Lines), "|"); err != nil || got != "i1 deleted |i2  two|x1 deleted " {
				t.Errorf("got %s, %v", got, err)
			}
		})
		t.Run("what is neither shown nor folded is counted", func(t *testing.T) {
			for n := range 30 {
				push(t, "between", Encode(said(n, 20)))
			}
			p, err := h.Read(ctx, "between", Limits{Max: 8})
			if err != nil || p.Between != 22 || len(p.Lines) != 8 || p.Summary.Version != 0 {
				t.Errorf("got %d lines behind %d, %v", len(p.Lines), p.Between, err)
			}
		})
		t.Run("conversations are apart", func(t *testing.T) {
			push(t, "dm", Encode(said(7, 20)))
			got, err := h.Window(ctx, "place", Limits{})
			if err != nil || len(got) != 0 {
				t.Errorf("got %v, %v", got, err)
			}
		})
		t.Run("a key of another type and a context that is over are errors", func(t *testing.T) {
			if err := s.Client.Set(ctx, key("wrong"), "x", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Window(ctx, "wrong", Limits{}); err == nil || !strings.Contains(err.Error(), "history of wrong") {
				t.Errorf("wrong type: %v", err)
			}
			over, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := h.Window(over, "order", Limits{}); err == nil {
				t.Error("no error although the context is over")
			}
		})
	})
}

func TestLines(t *testing.T) {
	t.Parallel()
	ann := chat.Author{ID: "U1", Name: "Ann"}
	for name, c := range map[string]struct{ got, want chat.Line }{
		"message": {
			InputLine(chat.UserInput{ID: "i1", Author: ann, Text: "hi", At: epoch}),
			chat.Line{ID: "i1", Role: chat.LineUser, Author: ann, Text: "hi", At: epoch},
		},
		"files and a cut": {
			InputLine(chat.UserInput{ID: "i1", Text: "abc", TextSize: 10, Attachments: []chat.Attachment{{Name: "a.txt"}, {Name: "b.png"}}}),
			chat.Line{ID: "i1", Role: chat.LineUser, Text: "abc\n[cut: 7 of 10 bytes are not shown]\n[attached file: a.txt]\n[attached file: b.png]"},
		},
		"only a file": {
			InputLine(chat.UserInput{ID: "i1", Attachments: []chat.Attachment{{Name: "a.txt"}}}),
			chat.Line{ID: "i1", Role: chat.LineUser, Text: "[attached file: a.txt]"},
		},
		"edit":   {InputLine(chat.UserInput{ID: "e", Kind: chat.KindEdit, Text: "x"}), chat.Line{ID: "e", Role: chat.LineUser, Text: "x", Note: NoteEdited}},
		"delete": {InputLine(chat.UserInput{ID: "d", Kind: chat.KindDelete}), chat.Line{ID: "d", Role: chat.LineUser, Note: NoteDeleted}},
		"stop":   {InputLine(chat.UserInput{ID: "s", Kind: chat.KindStop, Text: "stop"}), chat.Line{ID: "s", Role: chat.LineUser, Text: "stop", Note: NoteStopped}},
		"result": {
			ResultLine(chat.TaskResult{ID: "t1", Title: "Read", Status: chat.TaskFailed, FailureReason: "timeout", Output: "half", Error: "late", CompletedAt: epoch}),
			chat.Line{ID: "t1", Role: chat.LineSystem, Text: "Task t1 (Read) failed, timeout\nhalf\nerror: late", At: epoch},
		},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestEncodeNeverFails(t *testing.T) {
	t.Parallel()
	l := said(1, 20)
	l.At = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	got, err := Decode(Encode(l))
	if err != nil || got.Text != l.Text || !got.At.IsZero() {
		t.Errorf("got %+v, %v; want the text without its time", got, err)
	}
	if s := Encode(said(1, 20)); strings.Contains(s, "\n") {
		t.Errorf("%q holds a line break", s)
	}
}
