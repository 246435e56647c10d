package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

// A kind is what sort of conversation a place is, in Slack's words for it.
type kind string

const (
	direct  kind = "im"
	group   kind = "mpim"
	channel kind = "channel" // public or private
)

// kinds knows which sort of conversation a place is where an event does not say.
type kinds struct {
	api *api

	mu    sync.Mutex
	known map[string]standing // :: place → what it is
}

// A standing is what a place is and whether the bot is in it.
type standing struct {
	kind   kind
	member bool
	until  time.Time
}

func newKinds(a *api) *kinds { return &kinds{api: a, known: map[string]standing{}} }

// of gives the kind of a place. said is what the event says, if it says so.
func (k *kinds) of(ctx context.Context, place, said string) kind {
	switch {
	case said == string(direct), said == string(group):
		return kind(said)
	case said == "channel", said == "group", said == "private_channel":
		return channel
	case strings.HasPrefix(place, "D"):
		return direct
	}
	s, err := k.ask(ctx, place)
	if err != nil {
		// A place that we cannot ask about is treated as the kind that needs a mention.
		return channel
	}
	return s.kind
}

// member reports whether the bot is in a place.
func (k *kinds) member(ctx context.Context, place string) (bool, error) {
	s, err := k.ask(ctx, place)
	return s.member, err
}

// Group reports whether a place is the direct messages of a group of people. Of a place
// that Slack does not show us we are told nothing, so it is none.
func (b *Bot) Group(ctx context.Context, place string) (bool, error) {
	s, err := b.kinds.ask(ctx, place)
	var refused slack.SlackErrorResponse
	if errors.As(err, &refused) && (refused.Err == "channel_not_found" || refused.Err == "missing_scope") {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask Slack what place %s is: %w", place, err)
	}
	return s.kind == group, nil
}

func (k *kinds) ask(ctx context.Context, place string) (standing, error) {
	k.mu.Lock()
	s, ok := k.known[place]
	k.mu.Unlock()
	if ok && k.api.o.Now().Before(s.until) {
		return s, nil
	}
	var c *slack.Channel
	err := k.api.call(ctx, Draw{Method: "conversations.info", Priority: Final}, 500*time.Millisecond, func(ctx context.Context) (err error) {
		c, err = k.api.sdk.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: place})
		return err
	})
	if err != nil {
		return standing{}, err
	}
	s = standing{kind: channel, member: c.IsMember || c.IsIM || c.IsMpIM, until: k.api.o.Now().Add(5 * time.Minute)}
	if !s.member {
		s.until = k.api.o.Now().Add(5 * time.Second) // we tell people to invite us and to try again
	}
	switch {
	case c.IsIM:
		s.kind = direct
	case c.IsMpIM:
		s.kind = group
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxKnown {
		clear(k.known)
	}
	k.known[place] = s
	return s, nil
}
