package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mimikit/core/sandbox"
)

// A server is one server, connected or not.
type server struct {
	Server
	set  *Set
	log  *slog.Logger
	home string

	turn     chan struct{} // capacity 1; who holds it may change what follows
	link     *link         // nil while there is none
	tools    []*sdk.Tool   // the last that were listed and are allowed
	failures int           // in a row, to reach it
	until    time.Time     // not tried again before
	why      error         // the last failure
}

// A link is a connection, and the process behind it.
type link struct {
	session *sdk.ClientSession
	proc    *sandbox.Process // nil of a server over HTTP
	http    *http.Client     // nil of one over pipes
	gone    chan struct{}    // closed when it ended by itself
	stale   atomic.Bool      // its tools have changed
}

const (
	minBackoff  = time.Second
	maxBackoff  = time.Minute
	maxTools    = 500     // of one server
	maxMessage  = 4 << 20 // bytes of one message of a server
	maxResponse = 8 << 20 // bytes of one HTTP response
	closing     = 2 * time.Second
)

// hold takes the turn, unless ctx ends before.
func (v *server) hold(ctx context.Context) (release func(), err error) {
	select {
	case v.turn <- struct{}{}:
		return func() { <-v.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// reach gives the connection, and makes one where there is none. Who comes soon after
// a failure is told of it again.
func (v *server) reach(ctx context.Context) (*link, error) {
	release, err := v.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return v.reached(ctx)
}

// reached is reach for who holds the turn.
func (v *server) reached(ctx context.Context) (*link, error) {
	if v.set.life.Err() != nil {
		return nil, errClosed
	}
	if l := v.link; l != nil {
		select {
		case <-l.gone:
			v.drop(l)
			v.log.WarnContext(ctx, "mcp_server_gone", "stderr", v.said(l))
		default:
			return l, nil
		}
	}
	if left := v.until.Sub(v.set.o.Now()); left > 0 {
		return nil, fmt.Errorf("%w (it is tried again in %s)", v.why, max(left.Round(time.Second), time.Second))
	}
	l, err := v.connect(ctx)
	if err != nil {
		if ctx.Err() != nil || v.set.life.Err() != nil {
			return nil, err // that says nothing about the server
		}
		v.failed(err)
		return nil, err
	}
	v.link = l
	if err := v.list(ctx, l); err != nil {
		v.drop(l)
		if ctx.Err() == nil {
			v.failed(err)
		}
		return nil, err
	}
	v.failures, v.why = 0, nil
	v.log.InfoContext(ctx, "mcp_server_ready", "tools", len(v.tools))
	return l, nil
}

func (v *server) failed(err error) {
	pause := maxBackoff
	if v.failures < 6 {
		pause = min(minBackoff<<v.failures, maxBackoff)
	}
	v.failures++
	v.until, v.why = v.set.o.Now().Add(pause), err
}

// listed gives the tools that may be used. With an error they are those of earlier.
func (v *server) listed(ctx context.Context) ([]*sdk.Tool, error) {
	release, err := v.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := v.reached(ctx)
	if err == nil && l.stale.Load() {
		err = v.list(ctx, l)
	}
	return v.tools, err
}

// list asks a server for its tools.
func (v *server) list(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, v.set.o.Start)
	defer cancel()
	l.stale.Store(false)
	var all []*sdk.Tool
	for t, err := range l.session.Tools(ctx, nil) {
		if err != nil {
			l.stale.Store(true)
			return fmt.Errorf("list the tools of MCP server %s: %w", v.Name, v.reason(l, err))
		}
		if all = append(all, t); len(all) >= maxTools {
			v.log.WarnContext(ctx, "mcp_tools_left_out", "most", maxTools)
			break
		}
	}
	v.tools = v.allowed(all)
	return nil
}

// connect starts or reaches the server.
func (v *server) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, v.set.o.Start)
	defer cancel()
	defer context.AfterFunc(v.set.life, cancel)()
	l := &link{gone: make(chan struct{})}
	var transport sdk.Transport
	if v.URL != "" {
		l.http = v.client()
		transport = &sdk.StreamableClientTransport{
			Endpoint: v.URL, HTTPClient: l.http, MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxMessage,
		}
	} else {
		if err := v.start(l); err != nil {
			return nil, err
		}
		transport = &sdk.IOTransport{Reader: l.proc.Stdout, Writer: l.proc.Stdin, MaxLineLength: maxMessage}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "mimikit", Version: v.set.o.Version}, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{}, // it may ask nothing of us
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { l.stale.Store(true) },
	})
	session, err := connected(ctx, client, transport)
	if err != nil {
		l.kill() // first, so that all it said is there
		return nil, fmt.Errorf("reach MCP server %s: %w", v.Name, v.reason(l, err))
	}
	l.session = session
	go func() {
		_ = session.Wait()
		close(l.gone)
	}()
	return l, nil
}

// connected is Connect that returns when ctx ends, whatever the server does.
func connected(ctx context.Context, c *sdk.Client, t sdk.Transport) (*sdk.ClientSession, error) {
	type outcome struct {
		session *sdk.ClientSession
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		s, err := c.Connect(ctx, t, nil)
		done <- outcome{s, err}
	}()
	select {
	case o := <-done:
		return o.session, o.err
	case <-ctx.Done():
		go func() { // it ends when its process is killed or its request is given up
			if o := <-done; o.session != nil {
				_ = o.session.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// start starts the process of a server over pipes.
func (v *server) start(l *link) error {
	if err := os.MkdirAll(v.home, 0o700); err != nil {
		return fmt.Errorf("make the home of MCP server %s: %w", v.Name, err)
	}
	dir := v.Dir
	if dir == "" {
		dir = v.home
	}
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": v.home, "LANG": "C.UTF-8"}
	maps.Copy(env, v.Env)
	var err error
	// It lives as long as the set and not as long as the task that was first.
	if l.proc, err = sandbox.Start(v.set.life, sandbox.Program{Path: v.Command, Args: v.Args, Dir: dir, Env: env}); err != nil {
		return fmt.Errorf("start MCP server %s: %w", v.Name, err)
	}
	return nil
}

// drop ends a connection. Who calls holds the turn.
func (v *server) drop(l *link) {
	if v.link == l {
		v.link = nil
	}
	l.close()
}

// close ends the server with its set.
func (v *server) close() {
	v.turn <- struct{}{}
	defer func() { <-v.turn }()
	if v.link != nil {
		v.drop(v.link)
	}
}

// close says goodbye, for a short time, and then ends the process whatever it does.
func (l *link) close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if l.session != nil {
			_ = l.session.Close()
		}
	}()
	wait := time.NewTimer(closing)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	}
	l.kill()
}

// kill ends what is behind a connection.
func (l *link) kill() {
	if l.http != nil {
		l.http.CloseIdleConnections()
	}
	if l.proc != nil {
		l.proc.Kill()
		_ = l.proc.Wait()
	}
}

// said is the end of what the process wrote to its error output; it holds no secret,
// also not a half of one.
func (v *server) said(l *link) string {
	if l.proc == nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(v.clean(strings.ToValidUTF8(l.proc.Stderr(), "�"))), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if len(last) > 300 {
		last = strings.ToValidUTF8(last[:300], "") + "…"
	}
	return last
}

// reason words a failure, with what a process said last; it holds no secret.
func (v *server) reason(l *link, err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		text = "it did not answer in time"
	case errors.Is(err, sdk.ErrConnectionClosed) || strings.HasSuffix(text, "EOF"):
		text = "it shut the connection"
	}
	if said := v.said(l); said != "" {
		text += "; it said: " + said
	}
	return errors.New(v.clean(text))
}

// clean takes the secrets of the server's entry out of a text.
func (v *server) clean(text string) string {
	for _, s := range v.secrets {
		text = strings.ReplaceAll(text, s, "[secret]")
	}
	return text
}

// client sends the headers of the server's entry, and follows no redirect: those
// would go along with it.
func (v *server) client() *http.Client {
	base := http.DefaultTransport.(*http.Transport).Clone() //nolint:errcheck,forcetypeassert,nolintlint // the standard library's own
	return &http.Client{
		Transport:     &bounded{base: base, headers: v.Headers},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
