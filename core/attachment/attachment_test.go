package attachment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/attachment"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	thread = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1.1"}
	other  = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "2.1"}
	at     = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
)

func file(message, id string, minutes int) attachment.File {
	return attachment.File{
		Message: message, Author: chat.Author{ID: "U1"}, At: at.Add(time.Duration(minutes) * time.Minute),
		Attachment: chat.Attachment{ID: id, Name: id + ".csv", URL: "https://files.example/" + id, Text: "a,b"},
	}
}

func open(t *testing.T, s *store.Store) *attachment.Store {
	return attachment.New(s.Client, channel.Keys{Prefix: storetest.Prefix(t), Partitions: 4}, nil)
}

func TestFiles(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		a := open(t, s)
		add := func(c chat.Conversation, files ...attachment.File) {
			t.Helper()
			if err := a.Add(t.Context(), c, files); err != nil {
				t.Fatal(err)
			}
		}
		ids := func(c chat.Conversation) string {
			t.Helper()
			list, err := a.List(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			var out string
			for _, f := range list {
				out += f.Attachment.ID + " "
				if f.Attachment.Text != "" {
					t.Errorf("the content of %s is kept", f.Attachment.ID)
				}
			}
			return out
		}
		without := file("m1", "F3", 0)
		without.Attachment.URL = ""
		add(thread, file("m2", "F2", 2), file("m1", "F1", 1), without)
		add(thread, file("m1", "F1", 1)) // again, as after a lost answer
		add(other, file("m9", "F9", 1))
		add(other)
		if got := ids(thread); got != "F1 F2 " {
			t.Errorf("files %q", got)
		}
		if got := ids(other); got != "F9 " {
			t.Errorf("the other conversation's files %q", got)
		}
		if err := a.Forget(t.Context(), thread, "m1"); err != nil {
			t.Fatal(err)
		}
		if err := a.Forget(t.Context(), thread, "m1"); err != nil {
			t.Fatal(err)
		}
		if got := ids(thread); got != "F2 " {
			t.Errorf("after a message was removed: files %q", got)
		}
		for i := range attachment.Most + 5 {
			add(thread, file("m3", fmt.Sprintf("G%03d", i), 10+i))
		}
		list, err := a.List(t.Context(), thread)
		if err != nil || len(list) != attachment.Most || list[0].Attachment.ID != "G005" {
			t.Errorf("%d files are kept, the oldest is %+v, %v; want the newest %d", len(list), list[0], err, attachment.Most)
		}
	})
}

func TestDamagedFileIsLeftOut(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		keys := channel.Keys{Prefix: storetest.Prefix(t), Partitions: 4}
		a := attachment.New(s.Client, keys, nil)
		if err := a.Add(t.Context(), thread, []attachment.File{file("m1", "F1", 1)}); err != nil {
			t.Fatal(err)
		}
		key := keys.In(keys.Partition(thread.Key()), "files:"+thread.Key())
		if err := s.Client.HSet(t.Context(), key, "m0/F0", "{broken").Err(); err != nil {
			t.Fatal(err)
		}
		if list, err := a.List(t.Context(), thread); err != nil || len(list) != 1 {
			t.Errorf("%d files, %v; want the one that can be read", len(list), err)
		}
	})
}

// What people call a file, and what stands in a conversation's key, is kept as it is
// and reaches nobody else.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		a := open(t, s)
		names := []string{"../../etc/passwd", "a\x00b", "\u202egpj.exe", strings.Repeat("x", 10_000), "{tag}", "a/b", "\xff", "<script>", ":at", ""}
		places := []string{"C1", "C1:at", "{C1}", "C1/1.1", "C1%2F1.1", "", "..", "C1\r\nSET x 1"}
		for i, place := range places {
			c := chat.Conversation{Platform: "slack", Workspace: "T1", Place: place, Thread: ":at"}
			var files []attachment.File
			for n, name := range names {
				f := file("m1", fmt.Sprint("F", n), i)
				f.Attachment.Name = name
				files = append(files, f)
			}
			if err := a.Add(t.Context(), c, files); err != nil {
				t.Fatalf("%q: %v", place, err)
			}
		}
		for i, place := range places {
			c := chat.Conversation{Platform: "slack", Workspace: "T1", Place: place, Thread: ":at"}
			list, err := a.List(t.Context(), c)
			if err != nil || len(list) != len(names) {
				t.Fatalf("%q has %d files, %v", place, len(list), err)
			}
			for n, f := range list {
				if want := strings.ToValidUTF8(names[n], "\ufffd"); f.Attachment.Name != want || !f.At.Equal(at.Add(time.Duration(i)*time.Minute)) {
					t.Errorf("%q has %q of %s, want %q", place, f.Attachment.Name, f.At, want)
				}
			}
		}
	})
}
