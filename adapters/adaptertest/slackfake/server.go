package slackfake

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Who there is from the beginning.
const (
	TeamID    = "T0FAKE"
	AppID     = "A0FAKE"
	BotUser   = "U0BOT"
	BotID     = "B0BOT"
	BotToken  = "xoxb-fake-bot"
	AppToken  = "xapp-fake-app"
	Secret    = "fake-signing-secret"
	AckWithin = 3 * time.Second
)

// Options of a Server. The zero value works.
type Options struct {
	Listener net.Listener     // default: one on a free port of 127.0.0.1
	Host     string           // in the addresses that it gives out; default: the listener's
	Now      func() time.Time // default: time.Now
	// Target makes it deliver over HTTP to this address, instead of over sockets.
	Target string
	Client *http.Client // for Target
	// Ping is how often it pings each socket. Default 10 s.
	Ping time.Duration
	// Forget makes events get lost for which there is no socket, as they do once
	// Slack has tried for long enough.
	Forget bool
	// NotAgent makes it refuse what only agents may do.
	NotAgent bool
	// Tiers makes it refuse what is more than the tiers of the methods allow, and
	// messages that come too fast in one place.
	Tiers bool
}

// A Server is the fake. All its methods are safe for concurrent use.
type Server struct {
	o    Options
	base string
	http *http.Server
	done chan struct{}
	all  sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{} // closed at every change
	closed   bool
	last     int64 // newest time stamp given, in microseconds
	ids      int
	users    map[string]*User
	channels map[string]*Channel
	order    []string // channels, as added
	files    map[string]*File
	faults   []*Fault
	limits   map[string]int
	calls    map[string][]time.Time
	limited  int
	crowds   map[string]crowd
	made     map[string]int
	tickets  map[string]bool
	sockets  []*socket
	waiting  []*envelope // no socket was there for them
	open     map[string]*envelope
	acks     int
	retries  int
	told     map[string][]any // :: place and time stamp → the events of a message
	statuses map[string][]string
	statusAt map[string]time.Time
	sessions map[string][]string
	homes    map[string]json.RawMessage
	whispers []Whisper
	answers  []Answer
	urls     map[string]int // :: response URL → times used
	scopes   string
}

// Start makes a Server with one channel, C0TOWN, in which the bot is, and one
// user, U0ANN.
func Start(o Options) (*Server, error) {
	if o.Listener == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("start the fake Slack: %w", err)
		}
		o.Listener = l
	}
	if o.Host == "" {
		o.Host = o.Listener.Addr().String()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Ping == 0 {
		o.Ping = 10 * time.Second
	}
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	s := &Server{
		o: o, base: "http://" + o.Host, done: make(chan struct{}), changed: make(chan struct{}),
		users: map[string]*User{}, channels: map[string]*Channel{}, files: map[string]*File{}, limits: map[string]int{},
		calls: map[string][]time.Time{}, made: map[string]int{}, tickets: map[string]bool{}, open: map[string]*envelope{},
		told: map[string][]any{}, crowds: map[string]crowd{}, statuses: map[string][]string{}, statusAt: map[string]time.Time{}, sessions: map[string][]string{}, homes: map[string]json.RawMessage{},
		urls: map[string]int{}, scopes: "",
	}
	s.AddUser(User{ID: BotUser, Name: "mimikit", Bot: true})
	s.AddUser(User{ID: "U0ANN", Name: "Ann"})
	s.AddChannel(Channel{ID: "C0TOWN", Name: "town", Members: []string{"U0ANN", BotUser}})
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", s.serveAPI)
	mux.HandleFunc("/link", s.serveSocket)
	mux.HandleFunc("/respond/", s.serveResponse)
	mux.HandleFunc("/upload/", s.serveUpload)
	mux.HandleFunc("/files/", s.serveFile)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	s.all.Go(func() { _ = s.http.Serve(o.Listener) })
	return s, nil
}

// URL is what a client is to be given as the address of the Web API.
func (s *Server) URL() string { return s.base + "/api/" }

// Close ends it, with all its sockets.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	close(s.done)
	for _, e := range s.open {
		e.stop()
	}
	sockets := append([]*socket(nil), s.sockets...)
	s.mu.Unlock()
	for _, c := range sockets {
		_ = c.conn.Close()
	}
	_ = s.http.Close()
	s.all.Wait()
}

// touch tells whoever waits that something changed. It is called with mu held.
func (s *Server) touch() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Await waits until ok, which may call all methods that look, holds.
func (s *Server) Await(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stamp gives the next time stamp. It is called with mu held.
func (s *Server) stamp() string {
	us := max(s.o.Now().UnixMicro(), s.last+1)
	s.last = us
	return fmt.Sprintf("%d.%06d", us/1_000_000, us%1_000_000)
}

// id makes an id with a prefix. It is called with mu held.
func (s *Server) id(prefix string) string {
	s.ids++
	return prefix + strconv.Itoa(1000+s.ids)
}

// A call is one request to a method of the Web API.
type call struct {
	method string
	args   url.Values // of a form, or the top level of a JSON object
	json   map[string]json.RawMessage
}

func (c call) get(name string) string {
	if raw, ok := c.json[name]; ok {
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
		return string(raw)
	}
	return c.args.Get(name)
}

// refused is an ok:false answer.
type refused struct{ code, needed string }

func no(code string) *refused { return &refused{code: code} }

type answer map[string]any

// serveAPI answers one call of the Web API.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	c := call{method: strings.TrimPrefix(r.URL.Path, "/api/"), args: url.Values{}}
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		return
	}
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind {
	case "application/json":
		_ = json.Unmarshal(body, &c.json) // what is no object has no arguments
	default:
		c.args, _ = url.ParseQuery(string(body))
	}
	for k, v := range r.URL.Query() {
		if !c.args.Has(k) {
			c.args[k] = v
		}
	}
	f := s.fault(c.method)
	if f != nil && !s.before(w, r, f) {
		return
	}
	if f != nil && f.Error != "" {
		s.write(w, nil, no(f.Error))
		return
	}
	s.mu.Lock()
	crowded := s.crowded(c)
	s.mu.Unlock()
	if crowded != nil {
		s.before(w, r, crowded)
		return
	}
	a, ref := s.run(c, s.token(r, c))
	if f != nil && f.LoseAnswer {
		hangUp(w)
		return
	}
	s.write(w, a, ref)
}

func (s *Server) token(r *http.Request, c call) string {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return t
	}
	return c.get("token")
}

// run checks the token and calls the method.
func (s *Server) run(c call, token string) (answer, *refused) {
	m, known := methods[c.method]
	want, other := BotToken, AppToken
	if c.method == "apps.connections.open" {
		want, other = AppToken, BotToken
	}
	switch {
	case !known:
		return nil, no("unknown_method")
	case token == "":
		return nil, no("not_authed")
	case token == other:
		return nil, no("not_allowed_token_type")
	case token != want:
		return nil, no("invalid_auth")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if need := s.lacking(c); need != "" {
		return nil, &refused{code: "missing_scope", needed: need}
	}
	a, ref := m(s, c)
	if ref == nil {
		s.touch()
	}
	return a, ref
}

func (s *Server) write(w http.ResponseWriter, a answer, ref *refused) {
	if a == nil {
		a = answer{}
	}
	if a["ok"] = ref == nil; ref != nil {
		a["error"] = ref.code
		if ref.needed != "" {
			a["needed"] = ref.needed
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	s.mu.Lock()
	if s.scopes != "" {
		w.Header().Set("X-OAuth-Scopes", s.scopes)
	}
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(a)
}
