package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/draw.lua
	drawSource string
	//go:embed lua/limited.lua
	limitedSource string

	drawScript    = redis.NewScript(drawSource)
	limitedScript = redis.NewScript(limitedSource)
)

// A Rate is what a platform allows: so many calls in a time, and as many at once.
type Rate struct {
	Calls int
	Per   time.Duration
}

// Never is the wait of a call that should be dropped.
const Never = time.Duration(1<<63 - 1)

// Draw takes one call out of the budget of a name, which refills evenly. reserve
// is the share of it, 0 to 1, that this call must leave for others; a call that
// would touch it is told to wait for Never. When the call would have to wait
// longer than patience nothing is taken. Otherwise it is taken, and wait says how
// long to wait before it is made.
func (c *Cluster) Draw(ctx context.Context, name string, r Rate, reserve float64, patience time.Duration) (wait time.Duration, err error) {
	if r.Calls < 1 || r.Per <= 0 {
		return 0, fmt.Errorf("draw from the budget %s: a rate of %d calls in %s; want at least 1 in a time", name, r.Calls, r.Per)
	}
	got, err := drawScript.Run(ctx, c.o.Client, []string{c.key("budget:"+name, "at"), c.key("budget:"+name, "closed")},
		strconv.FormatFloat(float64(r.Per.Microseconds())/float64(r.Calls), 'f', 3, 64), r.Calls,
		strconv.FormatFloat(reserve, 'f', 3, 64), patience.Microseconds()).Int64()
	if err != nil {
		return 0, wrap("draw from the budget "+name, err)
	}
	if got < 0 {
		return Never, nil
	}
	return time.Duration(got) * time.Microsecond, nil
}

// Limited closes a budget for as long as the platform said, for all nodes.
func (c *Cluster) Limited(ctx context.Context, name string, wait time.Duration) error {
	err := limitedScript.Run(ctx, c.o.Client, []string{c.key("budget:"+name, "closed")}, max(wait.Milliseconds(), 1)).Err()
	return wrap("close the budget "+name, err)
}
