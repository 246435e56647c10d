package channel

import (
	"context"
	"sync/atomic"
	"testing"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// counting keeps a number, and the texts it was told, in keys of its own.
const counting = `return {
  check = function(keys, args)
    redis.call('GET', keys[1])
    redis.call('LLEN', keys[2])
  end,
  apply = function(keys, args, now)
    redis.call('INCRBY', keys[1], args[1])
    for i = 2, #args do redis.call('RPUSH', keys[2], args[i]) end
    if tonumber(now) < 1700000000000 then redis.call('SET', keys[1], 'no time') end
  end,
}`

func TestExtension(t *testing.T) { storetest.Each(t, extensionsChangeAllOrNothing) }

// What an extension does is part of the commit: it happens once, with the rest,
// and when it is refused nothing else happens.
func extensionsChangeAllOrNothing(t *testing.T, s *store.Store) {
	t.Parallel()
	r := newRig(t, s)
	var again atomic.Bool
	number := func(conv string) string { return r.keys.In(r.keys.Partition(conv), "count:"+conv) }
	list := func(conv string) string { return r.keys.In(r.keys.Partition(conv), "told:"+conv) }
	loops := r.loops()
	for i := range loops {
		if loops[i].Name == "think" {
			step := loops[i].Step
			loops[i].Step = func(ctx context.Context, w *Work) (Effects, error) {
				if w.Attempt == 2 {
					again.Store(true)
					s.Client.Del(ctx, list(w.Conversation)) // what was in the way is gone
				}
				fx, err := step(ctx, w)
				fx.Calls = []Call{
					{"count", []string{number(w.Conversation), list(w.Conversation)}, []string{"2", "a", "b"}},
					{"count", []string{number(w.Conversation), list(w.Conversation)}, []string{"1"}},
				}
				return fx, err
			}
		}
	}
	n := r.node("a", func(o *Options) {
		o.Loops, o.Extensions = loops, []Extension{{"other", counting}, {"count", counting}}
	})
	want := func(conv, count string, told int64) {
		t.Helper()
		if got := s.Client.Get(t.Context(), number(key(conv))).Val(); got != count {
			t.Errorf("%s: counted %q, want %s", conv, got, count)
		}
		if got := s.Client.LLen(t.Context(), list(key(conv))).Val(); got != told {
			t.Errorf("%s: told %d, want %d", conv, got, told)
		}
	}
	r.awaitAll([]string{r.ingest(n.Node, r.input("c", "1", "1")).InputID, r.ingest(n.Node, r.input("d", "1", "1")).InputID})
	want("c", "3", 2)
	want("d", "3", 2)

	// The second key has another type: nothing of the commit may happen.
	s.Client.Set(t.Context(), list(key("e")), "not ours", 0)
	id := r.ingest(n.Node, r.input("e", "1", "1")).InputID
	r.awaitAll([]string{id})
	want("e", "3", 2)
	if !again.Load() {
		t.Error("the commit was not refused")
	}
	r.awaitEmpty(n.Node)
}

func TestPrelude(t *testing.T) { storetest.Each(t, extensionsAreMadeWhenNamed) }

// An extension costs a script nothing that does not name it, and is made once by one
// that does, also through another.
func extensionsAreMadeWhenNamed(t *testing.T, s *store.Store) {
	t.Parallel()
	prelude := Prelude([]Extension{
		{Name: "count", Source: "redis.call('INCR', KEYS[1])\nreturn {twice = function() return 2 end}"},
		{Name: "through", Source: "return {four = function() return extensions.count.twice() + extensions.count.twice() end}"},
	})
	key := storetest.Prefix(t) + ":made"
	for _, c := range []struct {
		script string
		want   string
		made   int64
	}{
		{"return 'nothing'", "nothing", 0},
		{"return tostring(extensions.unknown)", "nil", 0},
		{"return tostring(extensions.through ~= nil)", "true", 0},
		{"return tostring(extensions.through.four())", "4", 1},
	} {
		got, err := s.Client.Eval(t.Context(), prelude+c.script, []string{key}).Text()
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.script, got, err, c.want)
		}
		if made, _ := s.Client.Get(t.Context(), key).Int64(); made != c.made {
			t.Errorf("%s: the extension was made %d times, want %d", c.script, made, c.made)
		}
	}
}

// A step that calls what nobody has is an error of the step, not of the node.
func TestUnknownExtension(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		r := newRig(t, s)
		loops := r.loops()
		for i := range loops {
			if loops[i].Name == "think" {
				loops[i].MaxAttempts = 1
				loops[i].Step = func(context.Context, *Work) (Effects, error) {
					return Effects{Calls: []Call{{Extension: "nothing"}}}, nil
				}
			}
		}
		n := r.node("a", func(o *Options) { o.Loops = loops })
		id := r.ingest(n.Node, r.input("c", "1", "1")).InputID
		if p := r.awaitAll([]string{id}); p[0].Kind != chat.ReplyNotice {
			t.Errorf("answered with %+v, want a notice", p[0])
		}
	})
}
