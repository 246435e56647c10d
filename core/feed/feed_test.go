package feed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/feed"
	"mimikit/core/store"
	"mimikit/core/store/faultproxy"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const conv = "console/local/ann/"

var at = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func options(t *testing.T, s *store.Store) feed.Options {
	prefix := storetest.Prefix(t)
	return feed.Options{
		Client: s.Client, Blocking: s.Blocking,
		Key: func(conversation string) string { return "{" + prefix + "}:f:" + conversation },
	}
}

func say(id, text string) feed.Item {
	return feed.Item{ID: id, Kind: feed.KindReply, Text: text, InputIDs: []string{"i1", "i2"}, ReplyTo: "m1", Part: 1, Parts: 2, At: at}
}

func status(text string) feed.Item { return feed.Item{Kind: feed.KindStatus, Text: text, At: at} }

func put(t *testing.T, f *feed.Feed, it feed.Item) string {
	t.Helper()
	id, err := f.Append(t.Context(), conv, it)
	if err != nil || id == "" {
		t.Fatalf("append %q: id %q, %v", it.ID, id, err)
	}
	return id
}

var errEnough = errors.New("enough")

// take follows until it has seen n items, and spells each as "place text".
func take(t *testing.T, f *feed.Feed, after string, n int, then ...func(seen int)) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	err := f.Follow(ctx, conv, after, 50*time.Millisecond, func(id string, it feed.Item) error {
		got = append(got, id+" "+it.Text)
		for _, fn := range then {
			fn(len(got))
		}
		if len(got) == n {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Fatalf("follow: %v after %q, want %d items", err, got, n)
	}
	return got
}

func TestAppendAndFind(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		o := options(t, s)
		f := feed.New(o)
		if last, err := f.Last(t.Context(), conv); last != "" || err != nil {
			t.Errorf("an empty feed ends at %q, %v", last, err)
		}
		var ids []string
		for i := range 100 { // several pages of Find
			ids = append(ids, put(t, f, say(fmt.Sprintf("r%d/0", i), "text")))
		}
		for _, i := range []int{0, 31, 32, 67, 99} {
			if id, err := f.Find(t.Context(), conv, fmt.Sprintf("r%d/0", i)); id != ids[i] || err != nil {
				t.Errorf("find item %d: %q, %v; want %s", i, id, err, ids[i])
			}
		}
		for _, absent := range []string{"r1/1", "r", ""} {
			if id, err := f.Find(t.Context(), conv, absent); id != "" || err != nil {
				t.Errorf("find %q: %q, %v; want none", absent, id, err)
			}
		}
		if last, err := f.Last(t.Context(), conv); last != ids[99] || err != nil {
			t.Errorf("the feed ends at %q, %v; want %s", last, err, ids[99])
		}
		if ttl := s.Client.TTL(t.Context(), o.Key(conv)).Val(); ttl < 29*24*time.Hour || ttl > 30*24*time.Hour {
			t.Errorf("the feed is kept for %v, want 30 days", ttl)
		}
	})
}

// An item comes back as it was put, whatever is in it.
func TestItemWhole(t *testing.T) {
	t.Parallel()
	f := feed.New(options(t, storetest.Mini(t)))
	want := say("r/1", "**bold**\n\x1b[31m \u202e 日本")
	put(t, f, want)
	m, err := f.Missed(t.Context(), conv, "me", 10)
	if err != nil || len(m.Entries) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	if got := m.Entries[0].Item; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !want.Last() || (feed.Item{Part: 0, Parts: 2}).Last() || !(feed.Item{}).Last() {
		t.Error("Last: want true for part 1 of 2 and for an item that counts no parts, false for part 0 of 2")
	}
}

// However much is said, a feed stays short; and statuses take none of its room.
func TestCap(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		o := options(t, s)
		o.Keep = 50
		f := feed.New(o)
		for i := range 500 {
			put(t, f, say(fmt.Sprint(i), "x"))
		}
		kept := s.Client.XLen(t.Context(), o.Key(conv)).Val()
		if kept < 50 || kept > 200 { // Redis drops whole nodes of 100
			t.Errorf("%d items are kept, want about 50", kept)
		}
		for range 20 {
			put(t, f, status("working"))
		}
		if n := s.Client.XLen(t.Context(), o.Key(conv)).Val(); n != kept {
			t.Errorf("20 statuses left %d of %d items", n, kept)
		}
		key := o.Key(conv) + ":status"
		if n, ttl := s.Client.XLen(t.Context(), key).Val(), s.Client.TTL(t.Context(), key).Val(); n != 1 || ttl <= 0 || ttl > feed.StatusTTL {
			t.Errorf("%d statuses are kept for %v, want 1 for %v", n, ttl, feed.StatusTTL)
		}
	})
}

// A status is seen without a place, and never after what was said after it.
func TestFollow(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		f := feed.New(options(t, s))
		a := put(t, f, say("a", "a"))
		put(t, f, status("old"))
		put(t, f, status("working"))
		b := put(t, f, say("b", "b"))
		var c, d string
		got := take(t, f, "", 5, func(seen int) {
			switch seen {
			case 3: // all that was there; the rest comes while it waits
				c = put(t, f, say("c", "c"))
			case 4:
				d = put(t, f, say("d", "d"))
			}
		})
		// Within the millisecond of a, the status may come before it.
		shown := slices.Index(got, " working")
		if shown < 0 || shown > slices.Index(got, b+" b") {
			t.Fatalf("got %q, want the status before b", got)
		}
		got = slices.Delete(got, shown, shown+1)
		if want := []string{a + " a", b + " b", c + " c", d + " d"}; !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if got := take(t, f, b, 3); !slices.Equal(got, []string{" working", c + " c", d + " d"}) {
			t.Errorf("after b: %q, want the status, c and d", got)
		}
	})
}

func TestFollowEnds(t *testing.T) {
	t.Parallel()
	f := feed.New(options(t, storetest.Mini(t)))
	ctx, cancel := context.WithCancelCause(t.Context())
	put(t, f, say("a", "a"))
	err := f.Follow(ctx, conv, "", time.Hour, func(string, feed.Item) error {
		cancel(errEnough)
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Errorf("follow ended with %v, want the cause %v", err, errEnough)
	}
}

// What cannot be read is left out, and the rest still comes.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	s := storetest.Mini(t)
	o := options(t, s)
	f := feed.New(o)
	for _, values := range [][]any{{"id", "x", "item", "{"}, {"foreign", "1"}} {
		s.Client.XAdd(t.Context(), &redis.XAddArgs{Stream: o.Key(conv), Values: values})
	}
	id := put(t, f, say("a", "a"))
	if got := take(t, f, "", 1); !slices.Equal(got, []string{id + " a"}) {
		t.Errorf("followed %q, want a alone", got)
	}
	if m, err := f.Missed(t.Context(), conv, "me", 10); err != nil || len(m.Entries) != 1 || m.At != id {
		t.Errorf("missed %+v, %v; want a alone", m, err)
	}
}

func TestMissed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		f := feed.New(options(t, s))
		check := func(when, want string, more bool, at string) {
			t.Helper()
			m, err := f.Missed(t.Context(), conv, "me", 3)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, e := range m.Entries {
				got.WriteString(e.Item.Text)
			}
			if got.String() != want || m.More != more || m.At != at {
				t.Errorf("%s: missed %q, more %v, at %q; want %q, %v, %q", when, got.String(), m.More, m.At, want, more, at)
			}
		}
		check("nothing said", "", false, "")
		a := put(t, f, say("a", "a"))
		check("first time", "a", false, a)
		if err := f.SetCursor(t.Context(), conv, "me", a); err != nil {
			t.Fatal(err)
		}
		if c, err := f.Cursor(t.Context(), conv, "me"); c != a || err != nil {
			t.Errorf("cursor %q, %v; want %s", c, err, a)
		}
		if c, err := f.Cursor(t.Context(), conv, "you"); c != "" || err != nil {
			t.Errorf("the cursor of another reader is %q, %v; want none", c, err)
		}
		check("all seen", "", false, a)
		for _, s := range []string{"b", "c", "d"} {
			put(t, f, say(s, s))
		}
		last, _ := f.Last(t.Context(), conv)
		check("three missed", "bcd", false, last)
		last = put(t, f, say("e", "e"))
		check("four missed", "cde", true, last)
	})
}

// While Redis is away a follower waits, and misses nothing when it is back.
func TestFollowThroughOutage(t *testing.T) {
	t.Parallel()
	direct := storetest.Redis(t)
	proxy, err := faultproxy.New(direct.Client.(*redis.Client).Options().Addr, faultproxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	through := storetest.Open(t, store.Options{Mode: store.Single, Addrs: []string{proxy.Addr()}})
	o := options(t, direct)
	writer := feed.New(o)
	o.Client, o.Blocking = through.Client, through.Blocking
	reader := feed.New(o)

	a := put(t, writer, say("a", "a"))
	var b string
	got := take(t, reader, "", 2, func(seen int) {
		if seen != 1 {
			return
		}
		proxy.Block(true)
		if _, err := reader.Append(t.Context(), conv, say("x", "x")); err == nil || errors.Is(err, feed.ErrNotAppended) {
			t.Errorf("append without a network: %v, want an error that leaves it open", err)
		}
		if _, err := reader.Find(t.Context(), conv, "a"); err == nil {
			t.Error("find without a network gave no error: the item would be posted again")
		}
		b = put(t, writer, say("b", "b"))
		ctx := t.Context()
		go func() { // the follower meets the outage first
			storetest.Eventually(t, "a second dial of the follower", func() error {
				if ctx.Err() == nil && proxy.Stats().Connections < 3 {
					return errors.New("not yet")
				}
				return nil
			})
			proxy.Block(false)
		}()
	})
	if !slices.Equal(got, []string{a + " a", b + " b"}) {
		t.Errorf("followed %q, want a and b once each", got)
	}
}

// The one answer by which a poster may know that nothing was shown.
func TestNotAppended(t *testing.T) {
	t.Parallel()
	s, m := storetest.MiniRaw(t)
	f := feed.New(options(t, s))
	m.SetError("OOM command not allowed when used memory > 'maxmemory'.")
	if _, err := f.Append(t.Context(), conv, say("a", "a")); !errors.Is(err, feed.ErrNotAppended) {
		t.Errorf("append to a full Redis: %v, want ErrNotAppended", err)
	}
}
