package channel

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// Where somebody folds, an idle conversation is folded first, its summary kept for
// a while, and what cannot be folded goes in the end.
func TestIdleConversationsAreFoldedFirst(t *testing.T) {
	storetest.Each(t, idleConversationsAreFoldedFirst)
}

func idleConversationsAreFoldedFirst(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	n := r.node("a", nil)
	r.awaitAll([]string{r.ingest(n.Node, r.input("old", "1", "1")).InputID, r.ingest(n.Node, r.input("lost", "1", "1")).InputID})
	r.awaitEmpty(n.Node)
	n.stop()
	idle := func(conv string, days int) {
		at := time.Now().Add(-time.Duration(days) * 24 * time.Hour).UnixMilli()
		s.Client.ZAdd(t.Context(), r.keys.Active(r.keys.Partition(key(conv))), redis.Z{Score: float64(at), Member: key(conv)})
		s.Client.HSet(t.Context(), r.keys.Summary(key(conv)), "version", "1")
	}
	idle("old", 31)
	idle("lost", 61)
	told, cut := make(chan string, 10), make(chan string, 10)
	r.node("b", func(o *Options) {
		o.Hooks.Idle = func(conv string) { told <- conv }
		o.Hooks.HistoryCut = func(conv string, lines int64) { cut <- fmt.Sprint(conv, " ", lines) }
	})
	if got := <-told; got != key("old") {
		t.Errorf("told of %s", got)
	}
	if got := <-cut; !strings.HasPrefix(got, key("lost")+" ") {
		t.Errorf("cut %s", got)
	}
	if s.Client.Exists(t.Context(), r.keys.History(key("old"))).Val() != 1 || s.Client.Exists(t.Context(), r.keys.History(key("lost"))).Val() != 0 {
		t.Error("want the old one kept until it is folded, and the lost one gone")
	}
	s.Client.Del(t.Context(), r.keys.History(key("old"))) // it is folded
	r.node("c", func(o *Options) { o.Hooks.Idle = func(string) {} }).stop()
	if ttl := s.Client.PTTL(t.Context(), r.keys.Summary(key("lost"))).Val(); ttl < 364*24*time.Hour {
		t.Errorf("the summary of the lost one ends in %s", ttl)
	}
}

// What nobody folds is bounded all the same, and told.
func TestHistoryBeyondTheCapIsCutAndTold(t *testing.T) { storetest.Each(t, historyBeyondTheCap) }

func historyBeyondTheCap(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	cut := make(chan int64, 100)
	n := r.node("a", func(o *Options) {
		o.HistoryCap = 20
		o.Hooks.HistoryCut = func(conv string, lines int64) {
			if conv != key("c") {
				t.Errorf("cut %s", conv)
			}
			cut <- lines
		}
	})
	values := make([]any, 200)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	s.Client.RPush(t.Context(), r.keys.History(key("c")), values...)
	r.awaitAll([]string{r.ingest(n.Node, r.input("c", "1", "1")).InputID})
	r.awaitEmpty(n.Node)
	lines, left := int64(0), s.Client.LLen(t.Context(), r.keys.History(key("c"))).Val()
	for len(cut) > 0 {
		lines += <-cut
	}
	if lines < 180 || left < 20 || left > 121 {
		t.Errorf("%d lines were cut, and told so; %d are left", lines, left)
	}
}
