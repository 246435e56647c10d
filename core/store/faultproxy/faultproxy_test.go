package faultproxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/store/faultproxy"
	"mimikit/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func start(t *testing.T, target string, opts faultproxy.Options) *faultproxy.Proxy {
	t.Helper()
	p, err := faultproxy.New(target, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// echo serves what it reads, and ends when the peer has.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *faultproxy.Proxy) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c.(*net.TCPConn)
}

func TestTransparent(t *testing.T) {
	t.Parallel()
	p := start(t, echo(t), faultproxy.Options{})
	p.SetFaults(faultproxy.Faults{DelayMax: 200 * time.Microsecond})
	c := dial(t, p)
	sent := make([]byte, 3<<20)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(sent)
	go func() {
		_, _ = c.Write(sent)
		_ = c.CloseWrite()
	}()
	got, err := io.ReadAll(c) // ends because the half-close went through
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came back, %v; want the %d that were sent, unchanged", len(got), err, len(sent))
	}
}

func TestSwallowNextWritesAndLosesTheReply(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	server := storetest.NewServer(t)
	p := start(t, server.Addr(), faultproxy.Options{})
	through, direct := client(t, p.Addr()), client(t, server.Addr())
	ctx := t.Context()

	p.SwallowNext(2, "incr")
	if err := through.Set(ctx, "other", 1, 0).Err(); err != nil {
		t.Fatalf("a command that was not named: %v", err)
	}
	for range 2 {
		// The second one is on a new connection, whose set-up is spared.
		if err := through.Incr(ctx, "n").Err(); !errors.Is(err, io.EOF) {
			t.Errorf("INCR with its reply lost: %v, want EOF", err)
		}
	}
	if n, err := through.Incr(ctx, "n").Result(); err != nil || n != 3 {
		t.Errorf("INCR after that: %d, %v; want 3: the lost two took place", n, err)
	}
	if n, err := direct.Get(ctx, "n").Int(); err != nil || n != 3 {
		t.Errorf("server has %d, %v; want 3", n, err)
	}
	if got := p.Stats().Swallowed; got != 2 {
		t.Errorf("Swallowed = %d, want 2", got)
	}

	p.SwallowNext(1)
	pipe := through.Pipeline()
	for range 10 {
		pipe.Incr(ctx, "m")
	}
	if _, err := pipe.Exec(ctx); err == nil {
		t.Error("a pipeline with its reply lost succeeded")
	}
	if n, err := direct.Get(ctx, "m").Int(); err != nil || n != 10 {
		t.Errorf("pipeline: server has %d, %v; want 10", n, err)
	}
}

// lost runs the same commands through a proxy with that seed and returns which
// replies were lost.
func lost(t *testing.T, addr string, seed uint64) []int {
	t.Helper()
	p := start(t, addr, faultproxy.Options{Seed: seed})
	p.SetFaults(faultproxy.Faults{SwallowReply: 0.3})
	c := client(t, p.Addr())
	var at []int
	for i := range 60 {
		if c.Set(t.Context(), "k", i, 0).Err() != nil {
			at = append(at, i)
		}
	}
	if got := p.Stats().Swallowed; got != len(at) {
		t.Errorf("Swallowed = %d, but %d commands failed", got, len(at))
	}
	return at
}

func TestSeedRepeatsItself(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	addr := storetest.NewServer(t).Addr()
	first, second, other := lost(t, addr, 7), lost(t, addr, 7), lost(t, addr, 8)
	if len(first) < 5 || len(first) > 40 {
		t.Errorf("%d of 60 replies lost, want about 18", len(first))
	}
	if !equal(first, second) {
		t.Errorf("seed 7 lost %v, then %v", first, second)
	}
	if equal(first, other) {
		t.Errorf("seeds 7 and 8 lost the same: %v", first)
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestBlockAndFreeze(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	p := start(t, storetest.NewServer(t).Addr(), faultproxy.Options{})
	c := client(t, p.Addr())
	ctx := t.Context()
	ping := func(want bool, when string) {
		t.Helper()
		short, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := c.Ping(short).Err(); (err == nil) != want {
			t.Errorf("PING %s: %v", when, err)
		}
	}
	ping(true, "at first")
	p.Block(true)
	ping(false, "while blocked")
	p.Block(false)
	ping(true, "after the block")

	conn := dial(t, p)
	p.Freeze(true)
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	var b [7]byte
	if _, err := conn.Read(b[:]); err == nil {
		t.Error("a frozen proxy let a reply through")
	}
	p.Freeze(false)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadFull(conn, b[:]); err != nil || string(b[:]) != "+PONG\r\n" {
		t.Errorf("after the freeze: %q, %v; want the reply that was held", b, err)
	}
}

func TestCutEvery(t *testing.T) {
	t.Parallel()
	p := start(t, echo(t), faultproxy.Options{})
	before := dial(t, p)
	if _, err := before.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(before, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	p.SetFaults(faultproxy.Faults{CutEvery: time.Millisecond})
	after := dial(t, p)
	for name, c := range map[string]net.Conn{"open before": before, "opened after": after} {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("connection %s SetFaults: %v, want it cut", name, err)
		}
	}
	if got := p.Stats(); got.Cut != 2 || got.Connections != 2 {
		t.Errorf("Stats = %+v, want 2 connections, 2 cut", got)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	p := start(t, echo(t), faultproxy.Options{})
	p.SetFaults(faultproxy.Faults{DelayMin: 30 * time.Millisecond, DelayMax: 40 * time.Millisecond})
	c := dial(t, p)
	since := time.Now()
	_, _ = c.Write([]byte("x"))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(since); took < 60*time.Millisecond {
		t.Errorf("there and back took %v, want 30 ms each way at least", took)
	}
}

func TestCloseEndsConnections(t *testing.T) {
	t.Parallel()
	p := start(t, echo(t), faultproxy.Options{})
	p.Freeze(true) // a frozen link must not keep Close waiting
	c := dial(t, p)
	_, _ = c.Write([]byte("x"))
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived Close")
	}
}

func TestTargetAway(t *testing.T) {
	t.Parallel()
	p := start(t, "127.0.0.1:1", faultproxy.Options{})
	if _, err := dial(t, p).Read(make([]byte, 1)); err == nil {
		t.Error("a connection with no server behind it stayed open")
	}
}
