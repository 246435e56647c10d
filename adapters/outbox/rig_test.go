package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/outbox"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/faultproxy"
	"mimikit/core/store/storetest"
)

// The times of the tests. A killed node is replaced while its last post may still
// take effect, or waiting for that would not be seen.
const (
	lease       = 400 * time.Millisecond
	postTimeout = 500 * time.Millisecond
	lookupAfter = 800 * time.Millisecond
)

// onEach runs f on a miniredis and on a redis-server, each behind a TCP address
// so that a proxy can stand before it.
func onEach(t *testing.T, f func(t *testing.T, addr string)) {
	t.Run("miniredis", func(t *testing.T) { f(t, miniAddr(t)) })
	t.Run("redis", func(t *testing.T) { f(t, storetest.NewServer(t).Addr()) })
}

// miniAddr starts a miniredis that listens. A miniredis does not say what it is,
// so the store's check at the start would refuse it: its INFO is answered here,
// by reflection since the types belong to a library that only the store knows.
func miniAddr(t *testing.T) string {
	_, m := storetest.MiniRaw(t)
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	set := reflect.ValueOf(m.Server().SetPreHook)
	hook := func(in []reflect.Value) []reflect.Value {
		info := in[1].String() == "INFO"
		if info {
			text := "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrun_id:1\r\n"
			in[0].MethodByName("WriteBulk").Call([]reflect.Value{reflect.ValueOf(text)})
		}
		return []reflect.Value{reflect.ValueOf(info)}
	}
	set.Call([]reflect.Value{reflect.MakeFunc(set.Type().In(0), hook)})
	return m.Addr()
}

// A rig is a deployment whose replies come from the test.
type rig struct {
	t        *testing.T
	addr     string
	keys     channel.Keys
	platform *platform
	direct   *store.Store
	writer   *channel.Node // publishes, and reads how things stand
	change   func(*outbox.Options)
	// at is called when a node passes a point of a post; see points.
	at func(n *node, point, reply string, part int)
	// shown is called by a node that tells which message shows a reply.
	shown func(ctx context.Context, n *node, reply, message string) error
	// ready is called before a node starts a step, in its partition's goroutine.
	ready func(n *node)
}

func newRig(t *testing.T, addr string, partitions int) *rig {
	t.Helper()
	r := &rig{
		t: t, addr: addr, platform: newPlatform(t), keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: partitions},
		direct: storetest.Open(t, store.Options{Mode: store.Single, Addrs: []string{addr}}),
	}
	r.writer = r.newNode("writer", r.direct, nil)
	if err := r.writer.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) newNode(id string, s *store.Store, loops []channel.Loop) *channel.Node {
	r.t.Helper()
	n, err := channel.New(channel.Options{
		Client: s.Client, Blocking: s.Blocking, Keys: r.keys, NodeID: id, Loops: loops, Generation: s.Generation,
		Lease: lease, Poll: 100 * time.Millisecond, RebalanceEvery: 20 * time.Millisecond, StopGrace: time.Second,
		CallTimeout: 2 * time.Second,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// A node is one that runs, with a network of its own.
type node struct {
	*channel.Node
	name  string
	proxy *faultproxy.Proxy
	store *store.Store   // behind the proxy
	steps sync.WaitGroup // under way
}

// node starts a node and returns it.
func (r *rig) node(name string) *node {
	r.t.Helper()
	proxy, err := faultproxy.New(r.addr, faultproxy.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = proxy.Close() })
	s := storetest.Open(r.t, store.Options{Mode: store.Single, Addrs: []string{proxy.Addr()}})
	n := &node{name: name, proxy: proxy, store: s}
	n.Node = r.newNode(name, s, []channel.Loop{r.loop(n)})
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- n.Run(ctx) }()
	r.t.Cleanup(func() {
		proxy.Block(false) // a node that cannot reach Redis does not end
		cancel()
		if err := <-over; err != nil {
			r.t.Errorf("node %s: %v", name, err)
		}
	})
	return n
}

// loop is the outbox's loop, with the points that a post passes made known.
func (r *rig) loop(n *node) channel.Loop {
	at := func(point, reply string, part int) {
		if r.at != nil {
			r.at(n, point, reply, part)
		}
	}
	opt := outbox.Options{PostTimeout: postTimeout, LookupAfter: lookupAfter, MaxAttempts: 1000}
	if r.change != nil {
		r.change(&opt)
	}
	loop := outbox.New(opt).Loop()
	ready := loop.Ready
	loop.Ready = func(b *channel.Buffer) ([]*channel.Entry, time.Duration) {
		take, wait := ready(b)
		if len(take) > 0 && r.ready != nil {
			r.ready(n)
		}
		return take, wait
	}
	loop.Step = func(ctx context.Context, w *channel.Work) (channel.Effects, error) {
		n.steps.Add(1)
		defer n.steps.Done()
		reply := w.Entries[0].Value.(*chat.Reply)
		part := -1 // of the last mark, where every mark is for another part
		d := &door{p: r.platform, at: func(point string, i int) { at(point, reply.ID, i) }}
		opt := opt
		opt.Posters = map[string]adapters.Poster{"slack": d}
		if r.shown != nil {
			opt.Shown = func(ctx context.Context, reply *chat.Reply, message string) error {
				at("showing", reply.ID, len(d.Split(*reply))-1)
				return r.shown(ctx, n, reply.ID, message)
			}
		}
		mine := *w
		mine.Mark = func(ctx context.Context, puts ...channel.Put) (time.Time, error) {
			part++
			at("marking", reply.ID, part)
			committed, err := w.Mark(ctx, puts...)
			if err == nil {
				at("marked", reply.ID, part)
			}
			return committed, err
		}
		fx, err := outbox.New(opt).Loop().Step(ctx, &mine)
		if err == nil {
			at("settling", reply.ID, len(d.Split(*reply))-1)
		}
		return fx, err
	}
	return loop
}

func conversation(place string) chat.Conversation {
	return chat.Conversation{Platform: "slack", Workspace: "T1", Place: place}
}

// say publishes a reply, whose parts stand between bars.
func (r *rig) say(place, id, text string) {
	r.t.Helper()
	at := time.Unix(1763692800, 0)
	c := conversation(place)
	reply := &chat.Reply{ID: id, Conversation: c, Kind: chat.ReplyAnswer, Text: text, CreatedAt: at}
	p := channel.Publish{To: channel.TellerReply, Value: reply, Kind: string(reply.Kind)}
	if err := r.writer.Publish(r.t.Context(), id, at, c.Key(), p); err != nil {
		r.t.Fatal(err)
	}
}

// awaitSettled waits until every reply is settled.
func (r *rig) awaitSettled() {
	r.t.Helper()
	storetest.Eventually(r.t, "every reply settled", func() error {
		s, err := r.writer.Stats(context.Background())
		if err != nil {
			return err
		}
		for _, c := range s.Channels {
			if c.Entries > 0 || c.Pending > 0 {
				return fmt.Errorf("%s: %d entries, %d pending", c.Channel, c.Entries, c.Pending)
			}
		}
		return nil
	})
}

// checkNothingLeft is for the end: nothing pending, no record, no dead letter.
func (r *rig) checkNothingLeft() {
	r.t.Helper()
	r.awaitSettled()
	var errs []error
	for p := range r.keys.Partitions {
		for _, table := range []channel.Table{channel.PostTable, channel.Attempts} {
			m, err := r.direct.Client.HGetAll(context.Background(), r.keys.Table(p, table)).Result()
			if err != nil || len(m) > 0 {
				errs = append(errs, fmt.Errorf("table %s of partition %d: %v, %w", table, p, m, err))
			}
		}
	}
	dead, err := r.writer.Dead(context.Background(), 10)
	if err != nil || len(dead) > 0 {
		errs = append(errs, fmt.Errorf("dead letters: %+v, %w", dead, err))
	}
	if len(errs) > 0 {
		r.t.Error(errors.Join(errs...))
	}
}
