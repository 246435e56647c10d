package channel

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The scripts. Each file names its keys, arguments and answers at its head.
var (
	//go:embed lua/cycle.lua
	cycleSource string
	//go:embed lua/pending.lua
	pendingSource string
	//go:embed lua/acquire.lua
	acquireSource string
	//go:embed lua/release.lua
	releaseSource string
	//go:embed lua/ingest.lua
	ingestSource string
	//go:embed lua/publish.lua
	publishSource string
	//go:embed lua/nodes.lua
	nodesSource string
	//go:embed lua/replay.lua
	replaySource string
	//go:embed lua/sweep.lua
	sweepSource string

	pendingScript = redis.NewScript(pendingSource)
	acquireScript = redis.NewScript(acquireSource)
	releaseScript = redis.NewScript(releaseSource)
	ingestScript  = redis.NewScript(ingestSource)
	publishScript = redis.NewScript(publishSource)
	nodesScript   = redis.NewScript(nodesSource)
	replayScript  = redis.NewScript(replaySource)
	sweepScript   = redis.NewScript(sweepSource)
)

// extended is the cycle script with the extensions that its calls name.
func extended(extensions []Extension) *redis.Script {
	return redis.NewScript(Prelude(extensions) + cycleSource)
}

// Prelude is the Lua that stands before a script which calls extensions: there they
// are extensions.name. One is made when it is named first, for most commits call
// none, and to make a large one costs as much as a dozen commands.
func Prelude(extensions []Extension) string {
	var b strings.Builder
	b.WriteString("local extensions, sources = {}, {}\n")
	for _, e := range extensions {
		fmt.Fprintf(&b, "sources[%q] = function()\n%s\nend\n", e.Name, e.Source)
	}
	b.WriteString(`setmetatable(extensions, {__index = function(all, name)
  local made = sources[name] and sources[name]()
  rawset(all, name, made)
  return made
end})
`)
	return b.String()
}

// Answers of fenced scripts that mean the caller must not go on.
var (
	errStale = fmt.Errorf("the lease has another token: %w", ErrLost)
	errLate  = errors.New("a newer call of this owner was served already")
)

// run runs a script whose keys all lie in one slot. With wait > 0 it also waits,
// on the same connection, until that many replicas have the write.
func (n *Node) run(ctx context.Context, wait bool, s *redis.Script, keys []string, args ...any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, n.opt.CallTimeout)
	defer cancel()
	var v any
	var err error
	if wait && n.opt.WaitReplicas > 0 {
		v, err = n.runAndWait(ctx, s, keys, args...)
	} else {
		v, err = s.Run(ctx, n.opt.Client, keys, args...).Result()
	}
	if err != nil {
		return nil, err
	}
	answer, ok := v.([]any)
	if !ok || len(answer) == 0 {
		return nil, fmt.Errorf("script answered %T, want a list", v)
	}
	if word, ok := answer[0].(string); ok {
		switch word {
		case "stale":
			return nil, errStale
		case "late":
			return nil, errLate
		}
	}
	return answer, nil
}

func (n *Node) runAndWait(ctx context.Context, s *redis.Script, keys []string, args ...any) (any, error) {
	client := n.opt.Client
	if cluster, ok := client.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, keys[0])
		if err != nil {
			return nil, fmt.Errorf("find the master of %s: %w", keys[0], err)
		}
		client = master
	}
	// Eval, not EvalSha: inside a pipeline nothing falls back when the server
	// does not know the script.
	pipe := client.Pipeline()
	cmd := s.Eval(ctx, pipe, keys, args...)
	acks := pipe.Do(ctx, "WAIT", n.opt.WaitReplicas, n.opt.CallTimeout.Milliseconds()/2)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	got, err := acks.Int()
	if err != nil {
		return nil, fmt.Errorf("wait for %d replicas: %w", n.opt.WaitReplicas, err)
	}
	if got < n.opt.WaitReplicas {
		return nil, fmt.Errorf("wait for %d replicas: only %d have the write", n.opt.WaitReplicas, got)
	}
	return cmd.Result()
}

// refusedByServer reports whether an error is Redis' own answer that the script
// did not run to its end for a reason that a repeat of the same call may not
// mend, as opposed to a lost connection.
func refusedByServer(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) {
		return false
	}
	var re redis.Error
	if !errors.As(err, &re) {
		return false
	}
	text := re.Error()
	for _, code := range passing {
		// Before Redis 7 the error of a command stands inside that of the script.
		if strings.HasPrefix(text, code+" ") || strings.Contains(text, " -"+code+" ") {
			return false
		}
	}
	return !strings.HasPrefix(text, "ERR max number of clients")
}

// passing are the errors that a server gives for a while and that say nothing of
// the call: its state, its place in a Cluster, and who may speak to it.
var passing = []string{
	"LOADING", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "MISCONF", "OOM", "UNKILLABLE",
	"BUSY", "MOVED", "ASK", "NOAUTH", "WRONGPASS", "NOPERM",
}

// noSuchGroup reports whether a stream or its group is gone: the Redis lost it
// or somebody deleted it.
func noSuchGroup(err error) bool {
	return err != nil && strings.Contains(err.Error(), "NOGROUP")
}

// The parts of an answer. Redis gives what the scripts promise; a server that
// does not is told from its shape and never trusted with an index.

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

func asString(v any) string {
	switch s := v.(type) {
	case string:
		return s
	case int64:
		return fmt.Sprint(s)
	}
	return ""
}

func asInt(v any) int64 {
	switch x := v.(type) {
	case int64:
		return x
	case string:
		var n int64
		_, _ = fmt.Sscan(x, &n) // 0 when it is no number
		return n
	}
	return 0
}

func asFields(v any) map[string]string {
	list := asList(v)
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[asString(list[i])] = asString(list[i+1])
	}
	return m
}
