package mcp

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"mimikit/core/action"
)

// Options of a Set. Servers and Home are needed.
type Options struct {
	Servers []Server
	Home    string           // an absolute folder, in which each server over pipes has one of its own
	Version string           // of this program, told to servers
	Start   time.Duration    // how long a server may take until it is ready; 0 means 20 s
	Logger  *slog.Logger     // nil means slog's default
	Now     func() time.Time // nil means time.Now
}

// A Set is the servers of one node. It is safe for concurrent use. [Set.Close] ends
// it.
type Set struct {
	o    Options
	all  []*server
	life context.Context
	end  context.CancelCauseFunc
}

// errClosed is why servers end with their Set.
var errClosed = errors.New("the MCP servers are shut down")

// New makes a Set. It starts nothing.
func New(o Options) *Set {
	if o.Start <= 0 {
		o.Start = 20 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Set{o: o}
	s.life, s.end = context.WithCancelCause(context.Background())
	for _, c := range o.Servers {
		s.all = append(s.all, &server{
			Server: c, set: s, turn: make(chan struct{}, 1), log: o.Logger.With("mcp_server", c.Name),
			home: filepath.Join(o.Home, c.Name),
		})
	}
	return s
}

// Close ends all servers and what they started, and waits for that.
func (s *Set) Close() {
	s.end(errClosed)
	var all sync.WaitGroup
	for _, v := range s.all {
		all.Go(v.close)
	}
	all.Wait()
}

// A State is what became of reaching a server.
type State struct {
	Server  string
	Tools   []string // that are offered, by their name here
	Missing []string // that are allowed and that it does not have
	Err     error    // why it cannot be reached
}

// Look reaches every server and says what came of it, for people.
func (s *Set) Look(ctx context.Context) []State {
	out := make([]State, len(s.all))
	s.each(func(i int, v *server) {
		tools, err := v.listed(ctx)
		st := State{Server: v.Name, Err: err}
		have := []string{}
		for _, t := range tools {
			st.Tools, have = append(st.Tools, v.toolName(t.Name)), append(have, t.Name)
		}
		for _, a := range v.Allow {
			if a != "*" && !slices.Contains(have, a) && err == nil {
				st.Missing = append(st.Missing, a)
			}
		}
		out[i] = st
	})
	return out
}

func (s *Set) each(f func(i int, v *server)) {
	var all sync.WaitGroup
	for i, v := range s.all {
		all.Go(func() { f(i, v) })
	}
	all.Wait()
}

// Definitions are the tools that may be used now. A server that cannot be reached
// offers what it offered last, since it may be back when the tool is wanted; one that
// never could offers nothing. It waits for servers that are starting, within the time
// that they have.
func (s *Set) Definitions(ctx context.Context) []action.Definition {
	lists := make([][]action.Definition, len(s.all))
	s.each(func(i int, v *server) {
		tools, err := v.listed(ctx)
		if err != nil && ctx.Err() == nil {
			v.log.WarnContext(ctx, "mcp_server_away", "error", err, "tools_known", len(tools))
		}
		for _, t := range tools {
			if d, ok := v.definition(t); ok {
				lists[i] = append(lists[i], d)
			}
		}
	})
	var out []action.Definition
	seen := map[string]bool{}
	for _, d := range slices.Concat(lists...) {
		if !seen[d.Name] {
			seen[d.Name] = true
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b action.Definition) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// allowed are the tools of a server that its entry names, each once.
func (v *server) allowed(all []*sdk.Tool) []*sdk.Tool {
	var out []*sdk.Tool
	seen := map[string]bool{}
	for _, t := range all {
		if t != nil && !seen[t.Name] && (slices.Contains(v.Allow, "*") || slices.Contains(v.Allow, t.Name)) {
			seen[t.Name] = true
			out = append(out, t)
		}
	}
	return out
}
