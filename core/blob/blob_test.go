package blob_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mimikit/core/blob"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		prefix := storetest.Prefix(t)
		key := func(conversation, id string) string { return "{" + prefix + "}:" + conversation + ":" + id }
		b := blob.New(blob.Options{Client: s.Client, Key: key})
		text := strings.Repeat("long \x00 ü", 10_000)
		for range 2 {
			if err := b.Put(t.Context(), "c", "i", text); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := b.Get(t.Context(), "c", "i"); got != text || err != nil {
			t.Errorf("got %d bytes and %v, want the %d that were put", len(got), err, len(text))
		}
		if ttl := s.Client.TTL(t.Context(), key("c", "i")).Val(); ttl < 29*24*time.Hour || ttl > 30*24*time.Hour {
			t.Errorf("kept for %v, want 30 days", ttl)
		}
		if _, err := b.Get(t.Context(), "other", "i"); !errors.Is(err, blob.ErrGone) {
			t.Errorf("a blob of another conversation: %v, want ErrGone", err)
		}
	})
}

func TestStoreAway(t *testing.T) {
	t.Parallel()
	s, m := storetest.MiniRaw(t)
	b := blob.New(blob.Options{Client: s.Client, Key: func(_, id string) string { return id }})
	m.SetError("LOADING")
	if err := b.Put(t.Context(), "c", "i", "text"); err == nil {
		t.Error("Put into a Redis that refuses gave no error")
	}
	if _, err := b.Get(t.Context(), "c", "i"); err == nil || errors.Is(err, blob.ErrGone) {
		t.Errorf("Get from a Redis that refuses: %v, want an error that is not ErrGone", err)
	}
}
