package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"mimikit/adapters"
	"mimikit/core/chat"
	"mimikit/core/cluster"
	"mimikit/core/telemetry"
)

// A rate bounds what one person may ask for in a minute, on all nodes together, so that
// nobody floods the bot for the others. Messages count at the time that the platform
// gives them, so that what is caught up on after an outage is judged as it was written.
// What nobody need answer, and the wish to stop, are never refused.
type rate struct {
	cluster *cluster.Cluster
	most    int // messages and commands a minute; 0 bounds nothing
	log     interface{ Warn(msg string, args ...any) }
	refused func(platform string)
}

func (a *App) rate() *rate {
	return &rate{
		cluster: a.cluster, most: a.cfg.Access.MaxPerMinute, log: a.log,
		refused: func(platform string) { a.metrics.Input(platform, telemetry.TooMany) },
	}
}

// over says why a thing that somebody asks for is refused, or "". told says that they
// were told in this minute already.
func (r *rate) over(ctx context.Context, platform, user, thing string, at time.Time) (why string, told bool) {
	if r == nil || r.most == 0 || user == "" || platform == "console" {
		return "", false
	}
	admitted, first, err := r.cluster.Admit(ctx, platform+"/"+user, thing, at, r.most)
	if err != nil {
		// It is no reason to refuse anybody; without Redis nothing is taken anyway.
		r.log.Warn("rate_not_counted", "platform", platform, "error", err)
		return "", false
	}
	if admitted {
		return "", false
	}
	r.refused(platform)
	return fmt.Sprintf("That is more than I take from one person: %d messages and commands a minute. I did not take this one, nor what you send in the rest of this minute; please send it again after that.", r.most), !first
}

// message judges a message.
func (r *rate) message(ctx context.Context, m adapters.Message) (why string, told bool) {
	if !m.Addressed || m.Kind == chat.KindDelete || m.Kind == chat.KindStop {
		return "", false
	}
	return r.over(ctx, m.Conversation.Platform, m.Author.ID, m.Conversation.Place+"/"+m.Message+"/"+m.Edit, m.At)
}

// brakes are the commands that make less be done. They are never refused: who wrote too
// much may well be who wants it to end.
var brakes = map[string]bool{"stop": true, "cancel": true, "pause": true}

// command judges a command. It is answered where it was given, so its answer says each
// time what is wrong.
func (r *rate) command(ctx context.Context, platform, user string, words []string) string {
	if len(words) > 0 && brakes[strings.ToLower(words[0])] {
		return ""
	}
	now := time.Now()
	why, _ := r.over(ctx, platform, user, "command "+ulid.MustNewDefault(now).String(), now)
	return why
}
