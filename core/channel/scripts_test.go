package channel

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

// What passes by itself must not be held against a step: Redis before 7 puts the
// error of a command into one of the script.
func TestPassingRefusals(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                                                                true,
		"ERR Error running script (call to f_1): @user_script:30: WRONGTYPE Operation against a key":                                                       true,
		"OOM command not allowed when used memory > 'maxmemory'. script: 1, on @user_script:30.":                                                           false,
		"ERR Error running script (call to f_1): @user_script:30: @user_script: 30: -OOM command not allowed when used memory > 'maxmemory'. ":             false,
		"ERR Error running script (call to f_1): @user_script:30: @user_script: 30: -READONLY You can't write against a read only replica. ":               false,
		"ERR Error running script (call to f_1): @user_script:30: @user_script: 30: -MISCONF Redis is configured to save RDB snapshots, but is currently ": false,
		"ERR max number of clients reached":                                false,
		"NOAUTH Authentication required.":                                  false,
		"WRONGPASS invalid username-password pair or user is disabled.":    false,
		"NOPERM this user has no permissions to run the 'evalsha' command": false,
		"LOADING Redis is loading the dataset in memory":                   false,
		"TRYAGAIN Multiple keys request during rehashing of slot":          false,
	} {
		if got := refusedByServer(fmt.Errorf("call: %w", redis.Error(serverError(text)))); got != refused {
			t.Errorf("%q: refused %v, want %v", text, got, refused)
		}
	}
}
