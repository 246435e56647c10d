// Package discordfake is a Discord for tests: a real HTTP and WebSocket server
// that speaks API v10 and the event gateway as Discord's documentation has them,
// in memory and on loopback.
//
// It is honest where Discord is unpleasant. A message's nonce comes with its
// creation and is gone when the message is read again. Rate limits are told in
// headers and enforced with real 429s. Interactions are over after 3 seconds and
// their tokens after 15 minutes. Text is hidden from an application without the
// message content intent. Links to files are signed and work for a day. Sessions
// replay what was missed, or are gone. And it can be made to fail in the ways that
// Discord fails: see the methods of [Server] whose names are those of faults.
//
// It shares no code with the adapter that it tests.
package discordfake

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Token is the bot token that the server accepts.
const Token = "fake-bot-token"

// A Server is one Discord with one application in it. It is safe for concurrent
// use.
type Server struct {
	mu      sync.Mutex
	changed *sync.Cond // of mu: anything that a test may wait for
	version int        // counts the changes

	bot      User
	app      string
	intents  int // privileged ones that are enabled in the portal
	base     string
	users    map[string]*User
	guilds   map[string]*guild
	channels map[string]*Channel
	messages map[string]*Message // by id
	order    map[string][]string // :: channel → ids of its messages, oldest first
	typing   map[string][]time.Time
	nonces   map[string]string // :: channel/nonce → message id
	commands map[string][]Command
	synced   int
	dms      map[string]string // :: user → channel
	files    map[string][]byte // :: path → content
	later    time.Duration     // by which the CDN's clock is ahead
	lastID   uint64
	acts     map[string]*Interaction // by token

	gateway gatewayState
	rest    restState

	http     *http.Server
	upgrader websocket.Upgrader
	serving  sync.WaitGroup
}

// New makes a Server with the bot "mimi", which is in no guild.
func New() *Server {
	s := &Server{
		intents: messageContent,
		users:   map[string]*User{}, guilds: map[string]*guild{}, channels: map[string]*Channel{},
		messages: map[string]*Message{}, order: map[string][]string{}, typing: map[string][]time.Time{},
		nonces: map[string]string{}, commands: map[string][]Command{}, dms: map[string]string{},
		files: map[string][]byte{}, acts: map[string]*Interaction{},
	}
	s.changed = sync.NewCond(&s.mu)
	s.bot = User{ID: s.snowflake(), Username: "mimi", Bot: true}
	s.users[s.bot.ID] = &s.bot
	s.app = s.bot.ID
	s.gateway = gatewayState{sessions: map[string]*session{}, heartbeat: 41250 * time.Millisecond, shards: 1, concurrency: 1, remaining: 1000, version: 10}
	s.rest = restState{windows: map[string]*window{}, limits: defaultLimits()}
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
	return s
}

// Start serves on a free port of loopback. Close ends it.
func (s *Server) Start() error {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the fake Discord: %w", err)
	}
	s.Serve(l, "http://"+l.Addr().String())
	return nil
}

// Serve serves a listener whose clients reach it as base.
func (s *Server) Serve(l net.Listener, base string) {
	s.mu.Lock()
	s.base = base
	s.mu.Unlock()
	s.serving.Go(func() { _ = s.http.Serve(l) })
}

// URL is the base of the REST API, with its version.
func (s *Server) URL() string { return s.base + "/api/v10" }

// Base is where the server is, without a path.
func (s *Server) Base() string { return s.base }

// Close ends all connections. It returns when nothing runs any more.
func (s *Server) Close() {
	_ = s.http.Close()
	s.mu.Lock()
	conns := s.gateway.all()
	s.mu.Unlock()
	for _, c := range conns {
		c.cut()
	}
	s.serving.Wait()
}

// discordEpoch is the first millisecond of 2015.
const discordEpoch = 1420070400000

// snowflake makes an id that is greater than all before it. s.mu is held, or
// nobody else has s.
func (s *Server) snowflake() string {
	ms := uint64(time.Now().UnixMilli() - discordEpoch)
	s.lastID = max(s.lastID+1, ms<<22)
	return strconv.FormatUint(s.lastID, 10)
}

// TimeOf is when an id was made.
func TimeOf(id string) time.Time {
	n, _ := strconv.ParseUint(id, 10, 64)
	return time.UnixMilli(int64(n>>22) + discordEpoch).UTC()
}

// note tells those who wait that something has changed. s.mu is held.
func (s *Server) note() {
	s.version++
	s.changed.Broadcast()
}

// Await waits until cond holds, which is asked at first and whenever anything has
// changed, and may call s. It returns ctx's error when that ends first.
func (s *Server) Await(ctx context.Context, cond func() bool) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	for {
		s.mu.Lock()
		version := s.version
		s.mu.Unlock()
		if cond() {
			return nil
		}
		s.mu.Lock()
		for s.version == version && ctx.Err() == nil {
			s.changed.Wait()
		}
		s.mu.Unlock()
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the fake Discord: %w", context.Cause(ctx))
		}
	}
}
