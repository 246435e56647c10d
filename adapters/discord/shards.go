package discord

import "sync"

// A State is how the listener is doing.
type State struct {
	Running   bool
	Shards    int // of the bot; 0 until Discord said how many
	Held      int // by this node; it stands by for the others
	Connected int // of those held: they have a session
}

// State tells how the listener is doing.
func (l *Listener) State() State { return l.d.shards.state() }

// Ready reports whether events reach this node, or it only waits for another node
// to leave a shard: every shard that it holds is connected.
func (l *Listener) Ready() bool {
	s := l.State()
	return s.Running && s.Shards > 0 && s.Connected == s.Held
}

// shardStates know how each shard of this node is.
type shardStates struct {
	mu      sync.Mutex
	running bool
	of      int
	held    map[int]bool // :: shard → it has a session
}

func newShardStates() *shardStates { return &shardStates{held: map[int]bool{}} }

// begin notes how many shards there are; 0 is that the listener has ended.
func (s *shardStates) begin(of int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.of = of > 0, of
}

func (s *shardStates) hold(id int) { s.set(id, false) }

func (s *shardStates) set(id int, connected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[id] = connected
}

func (s *shardStates) leave(id int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, id)
}

func (s *shardStates) state() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := State{Running: s.running, Shards: s.of, Held: len(s.held)}
	for _, connected := range s.held {
		if connected {
			out.Connected++
		}
	}
	return out
}

// observe is gateway.Options.Observe of a shard.
func (d *Bot) observe(shard int, what string) {
	switch what {
	case "ready", "resumed":
		d.shards.set(shard, true)
	case "ended":
		d.shards.set(shard, false)
	}
	if d.o.Hooks.Gateway != nil {
		d.o.Hooks.Gateway(what)
	}
}
