package trigger

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/task"
)

// The scripts. Each file says at its head what it needs before it, its keys, its
// arguments and its answers.
var (
	//go:embed lua/rows.lua
	rowsSource string
	//go:embed lua/extension.lua
	extensionSource string
	//go:embed lua/call.lua
	callSource string
	//go:embed lua/take.lua
	takeSource string

	callScript = redis.NewScript(alone() + callSource)
	takeScript = redis.NewScript(rowsSource + takeSource)
)

const extensionName = "trigger"

// Extensions are what a channel.Node must be given beside those of core/task, so
// that the calls that an [Issuer] spells can be committed. The extension makes and
// watches tasks by that of core/task, which the node's script knows under its name.
func Extensions() []channel.Extension {
	return []channel.Extension{{Name: extensionName, Source: rowsSource + extensionSource}}
}

// alone spells both extensions as core/channel puts them before its script.
func alone() string { return channel.Prelude(append(task.Extensions(), Extensions()...)) }

// asString is a part of an answer. What is not what the scripts promise becomes an
// empty one.
func asString(v any) string {
	switch s := v.(type) {
	case string:
		return s
	case int64:
		return fmt.Sprint(s)
	}
	return ""
}

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
