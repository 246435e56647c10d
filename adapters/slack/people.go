package slack

import (
	"context"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"mimikit/core/chat"
)

// A person is what we know of a user. The zero person is one that we could not
// ask for: nameless and without rights of the workspace.
type person struct {
	name  string
	admin bool // an owner or admin of this workspace
	bot   bool
}

const (
	knownFor   = time.Hour        // after which a person is asked for again
	unknownFor = 15 * time.Second // after a failed question
	maxKnown   = 20_000
)

// people knows the names and rights of users.
type people struct {
	api *api

	mu    sync.Mutex
	known map[string]acquaintance  // :: user id → person
	asked map[string]chan struct{} // :: user id → closed when the question that is under way ends
}

type acquaintance struct {
	person
	until time.Time
}

func newPeople(a *api) *people {
	return &people{api: a, known: map[string]acquaintance{}, asked: map[string]chan struct{}{}}
}

// get gives what is known of a user, and asks where nothing is; ctx bounds that.
func (p *people) get(ctx context.Context, id string) person {
	if id == "" {
		return person{}
	}
	for {
		p.mu.Lock()
		if k, ok := p.known[id]; ok && p.api.o.Now().Before(k.until) {
			p.mu.Unlock()
			return k.person
		}
		done, others := p.asked[id]
		if !others {
			done = make(chan struct{})
			p.asked[id] = done
		}
		p.mu.Unlock()
		if !others {
			return p.ask(ctx, id, done)
		}
		select {
		case <-done:
		case <-ctx.Done():
			return person{}
		}
	}
}

// ask asks Slack for a user, one question at a time for each.
func (p *people) ask(ctx context.Context, id string, done chan struct{}) person {
	defer func() {
		p.mu.Lock()
		delete(p.asked, id)
		p.mu.Unlock()
		close(done)
	}()
	var u *slack.User
	err := p.api.call(ctx, Draw{Method: "users.info", Priority: Final}, 500*time.Millisecond, func(ctx context.Context) (err error) {
		u, err = p.api.sdk.GetUserInfoContext(ctx, id)
		return err
	})
	k := acquaintance{until: p.api.o.Now().Add(unknownFor)}
	if err != nil {
		p.api.o.Logger.Debug("slack_user_unknown", "user", id, "error", err)
	} else {
		k.until = p.api.o.Now().Add(knownFor)
		k.person = p.of(u)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxKnown {
		for other := range p.known { // any one
			delete(p.known, other)
			break
		}
	}
	if old, ok := p.known[id]; ok && err != nil {
		k.person = old.person // rather an old name than none; rights are checked anew below
		k.admin = false
	}
	p.known[id] = k
	return k.person
}

func (p *people) of(u *slack.User) person {
	one := person{bot: u.IsBot || u.IsWorkflowBot || u.IsConnectorBot || u.ID == "USLACKBOT"}
	for _, n := range []string{u.Profile.DisplayName, u.RealName, u.Profile.RealName, u.Name} {
		if n != "" {
			one.name = n
			break
		}
	}
	p.api.mu.Lock()
	me := p.api.me
	p.api.mu.Unlock()
	// An admin of another workspace that shares a channel with us is a guest here.
	ours := me != nil && (u.TeamID == "" || u.TeamID == me.TeamID) && !u.IsStranger
	one.admin = ours && !u.Deleted && !u.IsRestricted && !u.IsUltraRestricted && (u.IsAdmin || u.IsOwner || u.IsPrimaryOwner)
	return one
}

// author is a user as an input has it.
func (p *people) author(ctx context.Context, id string) chat.Author {
	one := p.get(ctx, id)
	return chat.Author{ID: id, Name: one.name, Role: p.api.o.Role(id, one.admin), Bot: one.bot}
}

// namer gives names to the ids in a text, none that would take longer than ctx
// has.
func (p *people) namer(ctx context.Context) func(string) string {
	return func(id string) string { return p.get(ctx, id).name }
}
