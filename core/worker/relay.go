package worker

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// A relay stands between an agent and the endpoint of its model, so that the key never
// is where the agent and its commands are: no variable, file or memory of theirs holds
// it. The agent is given a token that only this relay takes, on this machine's
// loopback, for as long as the run lasts, and only to ask the model; whatever else the
// endpoint offers to who has the key is not reached through it.
type relay struct {
	Token string // for the agent, in place of a key
	Base  string // the address that the agent asks

	to      *url.URL
	end     AgentEndpoint
	prefix  string // of the paths in Base
	log     *slog.Logger
	proxy   *httputil.ReverseProxy
	server  *http.Server
	out     *http.Transport
	stop    context.CancelFunc
	serving sync.WaitGroup // the server, and each of its connections
}

// relayed is what an agent asks of its model's endpoint. None of it reads or changes
// what others have there.
var relayed = []string{"POST /responses", "POST /responses/compact", "GET /models"}

// address reads where the model answers.
func (a AgentEndpoint) address() (*url.URL, error) {
	base := a.BaseURL
	if base == "" {
		base = openAI
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("the address of the agent's model cannot be read") // it may hold a password
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the address of the agent's model is %q: want http:// or https:// and a host", u.Redacted())
	}
	return u, nil
}

// newRelay begins to listen. Whoever calls it calls close.
func newRelay(end AgentEndpoint, log *slog.Logger) (*relay, error) {
	to, err := end.address()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	r := &relay{Token: rand.Text(), to: to, end: end, log: log}
	// The path names whose address it stands for: some agents speak to some endpoints in
	// a way of their own, and tell them by their names.
	r.prefix = "/" + to.Host + strings.TrimSuffix(to.Path, "/")
	r.Base = "http://" + l.Addr().String() + (&url.URL{Path: r.prefix}).EscapedPath()
	r.out = &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 20 * time.Second, IdleConnTimeout: time.Minute,
		DisableCompression: true, // what the agent did not ask for it may not read
	}
	r.proxy = &httputil.ReverseProxy{
		Rewrite: r.rewrite, Transport: r.out, FlushInterval: -1, ErrorHandler: r.failed,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	r.server = &http.Server{
		Handler: r, ReadHeaderTimeout: 30 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: r.proxy.ErrorLog,
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew: // told by the loop that close waits for, so none comes after it
				r.serving.Add(1)
			case http.StateClosed, http.StateHijacked:
				r.serving.Done()
			}
		},
	}
	r.serving.Go(func() { _ = r.server.Serve(l) }) // it ends when it is closed, and not before
	return r, nil
}

// close ends all that goes through the relay, and gives when nothing of it is left.
func (r *relay) close() {
	r.stop()
	_ = r.server.Close()
	r.serving.Wait()
	r.out.CloseIdleConnections()
}

// ServeHTTP lets through what an agent asks its model.
func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	given := []byte(req.Header.Get("Authorization"))
	if subtle.ConstantTimeCompare(given, []byte("Bearer "+r.Token)) != 1 {
		refuseRelay(w, http.StatusUnauthorized, "this is for one agent, and you are not it")
		return
	}
	asked, found := strings.CutPrefix(req.URL.Path, r.prefix)
	if !found || !slices.Contains(relayed, req.Method+" "+asked) || req.Header.Get("Upgrade") != "" {
		r.log.WarnContext(req.Context(), "agent_asked_for_more", "method", req.Method, "path", req.URL.Path)
		refuseRelay(w, http.StatusNotFound, "an agent cannot ask for this")
		return
	}
	r.proxy.ServeHTTP(w, req)
}

// rewrite turns the agent's request into ours.
func (r *relay) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Path, p.Out.URL.RawPath = strings.TrimPrefix(p.In.URL.Path, r.prefix), ""
	p.SetURL(r.to)
	h := p.Out.Header
	h.Del("Authorization")
	switch password, _ := r.to.User.Password(); {
	case r.end.Key != "":
		h.Set("Authorization", "Bearer "+r.end.Key)
	case r.to.User != nil:
		p.Out.SetBasicAuth(r.to.User.Username(), password)
	}
	for name, value := range r.end.Headers {
		if strings.EqualFold(name, "Host") {
			p.Out.Host = value
			continue
		}
		h.Set(name, value)
	}
}

// failed tells the agent that its model cannot be reached, and the log why.
func (r *relay) failed(w http.ResponseWriter, req *http.Request, err error) {
	if req.Context().Err() == nil { // else the agent has gone, or must
		r.log.WarnContext(req.Context(), "agent_model_not_reached", "error", err)
	}
	refuseRelay(w, http.StatusBadGateway, "the model could not be reached")
}

// refuseRelay answers as such endpoints do, so that an agent finds the words.
func refuseRelay(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"message":%s,"type":"mimikit"}}`, quoted(why))
}
