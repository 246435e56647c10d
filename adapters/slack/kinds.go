package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"mimikit/adapters"
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
	heard map[string]hearsay  // :: place → what came from there says of it
}

// A hearsay is what an event or an interaction says of its place.
type hearsay struct {
	kind kind
	sure bool // it names the kind, else the place's name suggests it
}

// A standing is what a place is and whether the bot is in it.
type standing struct {
	kind   kind
	member bool
	until  time.Time
}

// strange is how long we know what a place is that we are not in: we tell people to
// invite us and to try again.
const strange = 5 * time.Second

func newKinds(a *api) *kinds {
	return &kinds{api: a, known: map[string]standing{}, heard: map[string]hearsay{}}
}

// told notes what kind of place an event says that it comes from, if it says so.
func (k *kinds) told(place, said string) {
	switch said {
	case string(direct), string(group):
		k.hear(place, hearsay{kind(said), true})
	case "channel", "group", "private_channel":
		k.hear(place, hearsay{channel, true})
	}
}

// groupName begins the names of groups' direct messages.
const groupName = "mpdm-"

// named notes that an interaction calls its place what groups are called. Interactions
// come also from places that we are not in, of which Slack tells us nothing else.
func (k *kinds) named(place, name string) {
	if strings.HasPrefix(name, groupName) {
		k.hear(place, hearsay{group, false})
	}
}

func (k *kinds) hear(place string, h hearsay) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.heard[place].sure && !h.sure {
		return
	}
	if len(k.heard) >= maxKnown {
		clear(k.heard)
	}
	k.heard[place] = h
}

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

// Group reports whether a place is the direct messages of a group of people. Slack is
// asked where none of its events has said so. Of a place that it does not show us we
// know no more than its name in an interaction; without one it is none.
func (b *Bot) Group(ctx context.Context, place string) (bool, error) {
	b.kinds.mu.Lock()
	heard := b.kinds.heard[place]
	b.kinds.mu.Unlock()
	if heard.sure {
		return heard.kind == group, nil
	}
	s, err := b.kinds.ask(ctx, place)
	var refused slack.SlackErrorResponse
	if errors.As(err, &refused) && (meanings[refused.Err] == adapters.PlaceGone || refused.Err == "missing_scope") {
		s = standing{kind: cmp.Or(heard.kind, channel), until: b.o.Now().Add(strange)}
		b.kinds.know(place, s) // or who types many commands there uses up what Slack may be asked
		err = nil
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
		s.until = k.api.o.Now().Add(strange)
	}
	switch {
	case c.IsIM:
		s.kind = direct
	case c.IsMpIM:
		s.kind = group
	}
	k.know(place, s)
	return s, nil
}

func (k *kinds) know(place string, s standing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxKnown {
		clear(k.known)
	}
	k.known[place] = s
}
