package task

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
)

// The scripts. Each file says at its head what it needs before it, its keys, its
// arguments and its answers.
var (
	//go:embed lua/rows.lua
	rowsSource string
	//go:embed lua/states.lua
	statesSource string
	//go:embed lua/heads.lua
	headsSource string
	//go:embed lua/turn.lua
	turnSource string
	//go:embed lua/queue.lua
	queueSource string
	//go:embed lua/pour.lua
	pourSource string
	//go:embed lua/ends.lua
	endsSource string
	//go:embed lua/cancel.lua
	cancelSource string
	//go:embed lua/ops.lua
	opsSource string
	//go:embed lua/extension.lua
	extensionSource string
	//go:embed lua/call.lua
	callSource string
	//go:embed lua/claim.lua
	claimSource string
	//go:embed lua/look.lua
	lookSource string
	//go:embed lua/beat.lua
	beatSource string
	//go:embed lua/note.lua
	noteSource string
	//go:embed lua/settle.lua
	settleSource string
	//go:embed lua/cascade.lua
	cascadeSource string
	//go:embed lua/forget.lua
	forgetSource string
	//go:embed lua/frame.lua
	frameSource string

	onStates  = luaChart() + statesSource
	onHeads   = fmt.Sprintf("local step = %d\n", PriorityStep.Milliseconds()) + headsSource
	onQueue   = onStates + onHeads + queueSource
	extension = onQueue + late(endsSource+cancelSource+opsSource, "cancel", "other") + extensionSource

	callScript    = framed(rowsSource+"local extension = (function()\n"+extension+"end)()\n", callSource)
	claimScript   = framed(rowsSource+onHeads+turnSource+late(onStates+queueSource+pourSource, "pour"), claimSource)
	lookScript    = framed(rowsSource+onQueue+endsSource+turnSource+pourSource, lookSource)
	beatScript    = framed(rowsSource+onStates, beatSource)
	noteScript    = framed(rowsSource, noteSource)
	settleScript  = framed(rowsSource+onStates+late(onHeads+queueSource, "enqueue", "defer", "unpark")+endsSource, settleSource)
	cascadeScript = framed(rowsSource+onQueue+endsSource+cancelSource, cascadeSource)
	forgetScript  = framed(rowsSource+onStates, forgetSource)
)

// framed makes a script of what it needs and of what it does.
func framed(before, source string) *redis.Script {
	return redis.NewScript(before + "local function serve(KEYS, ARGV)\n" + source + "end\n" + frameSource)
}

// late spells functions of a source that a script seldom needs. They are made when
// the first of them is called.
func late(source string, names ...string) string {
	list := strings.Join(names, ", ")
	var b strings.Builder
	fmt.Fprintf(&b, "local %s\ndo\nlocal function made()\n%sreturn %s\nend\n", list, source, list)
	for _, name := range names {
		fmt.Fprintf(&b, "function %[1]s(...)\n%[2]s = made()\nreturn %[1]s(...)\nend\n", name, list)
	}
	b.WriteString("end\n")
	return b.String()
}

const extensionName = "task"

// Extensions are what a channel.Node must be given, so that the calls that an
// [Issuer] spells can be committed.
func Extensions() []channel.Extension {
	return []channel.Extension{{Name: extensionName, Source: rowsSource + extension}}
}

// asList, asString: the parts of an answer. What is not what the scripts promise
// becomes an empty one.
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

func asInt(v any) int64 { return number(asString(v)) }

// passing reports whether an error of Redis says nothing of the call, but of the
// server's state or its place in a Cluster, so that a repeat may succeed.
func passing(err error) bool {
	for _, is := range []func(error) bool{
		redis.IsLoadingError, redis.IsReadOnlyError, redis.IsClusterDownError, redis.IsTryAgainError, redis.IsMasterDownError,
		redis.IsMaxClientsError, redis.IsNoReplicasError, redis.IsOOMError, redis.IsAuthError, redis.IsPermissionError,
	} {
		if is(err) {
			return true
		}
	}
	// Before Redis 7 the error of a command stands inside that of the script.
	for _, code := range []string{"LOADING", "READONLY", "MISCONF", "OOM", "BUSY", "CLUSTERDOWN", "MOVED", "ASK"} {
		if redis.HasErrorPrefix(err, code) || strings.Contains(err.Error(), " -"+code+" ") {
			return true
		}
	}
	return false
}
