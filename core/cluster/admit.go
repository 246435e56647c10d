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
	//go:embed lua/admit.lua
	admitSource string
	admitScript = redis.NewScript(admitSource)
)

// How long it is remembered what was admitted, so that what is offered again, late, is
// judged as before. Of a minute in which something was not admitted that is as long as
// a look back may bring it again: nobody's words are to be taken hours after they were
// told that they are not. In any other minute all would be admitted again anyway.
const (
	admitKept   = 10 * time.Minute
	refusedKept = 26 * time.Hour
)

// Admit counts a thing against a name in the minute of at, for all nodes: the first
// most things are admitted. One that was admitted is admitted again and counts once,
// so what is offered twice, or late, is judged alike; a minute is one of the clock, so
// around its end twice as many may come in a row. first is true for the first thing of
// the minute that is not admitted, and for no other.
func (c *Cluster) Admit(ctx context.Context, name, thing string, at time.Time, most int) (admitted, first bool, err error) {
	if most < 1 {
		return false, false, fmt.Errorf("admit %s of %s: at most %d; want at least 1", thing, name, most)
	}
	topic := "admit:" + name + ":" + strconv.FormatInt(at.Unix()/60, 10)
	got, err := admitScript.Run(ctx, c.o.Client, []string{c.key(topic, "in"), c.key(topic, "told")}, thing, most, admitKept.Milliseconds(), refusedKept.Milliseconds()).Int()
	if err != nil {
		return false, false, wrap("admit "+thing+" of "+name, err)
	}
	return got == 1, got == 2, nil
}
