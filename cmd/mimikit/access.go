package main

import (
	"cmp"
	"context"
	"slices"

	"mimikit/adapters"
	"mimikit/config"
	"mimikit/core/attachment"
	"mimikit/core/chat"
)

// An access decides what people may do, from the settings and from ids that the
// platforms verified. The terminal is not asked: whoever has it holds the machine.
type access struct{ c config.Access }

// role is what somebody may do. ids are their own and, on Discord, those of their
// roles; platformAdmin says that they administer the workspace or guild.
func (a access) role(platform string, platformAdmin bool, ids ...string) chat.Role {
	role := chat.RoleUser
	if platformAdmin {
		switch a.c.PlatformAdmins {
		case "admin":
			role = chat.RoleAdmin
		case "operator":
			role = chat.RoleOperator
		}
	}
	if listed(a.c.Operators, platform, ids...) {
		role = max(role, chat.RoleOperator)
	}
	if listed(a.c.Admins, platform, ids...) {
		role = chat.RoleAdmin
	}
	return role
}

// What people are told who may not speak with the bot.
const (
	notYou  = "You may not use me here. Whoever runs me decides who may."
	notHere = "I do not answer here. Whoever runs me decides where I do."
	notDM   = "I do not answer in direct messages. Mention me in a channel that I am in."
)

// refuses says why somebody is not answered somewhere, or "".
func (a access) refuses(c chat.Conversation, user string) string {
	if c.Platform == "console" {
		return ""
	}
	switch {
	case listed(a.c.DeniedUsers, c.Platform, user), len(a.c.Users) > 0 && !listed(a.c.Users, c.Platform, user):
		return notYou
	case listed(a.c.DeniedPlaces, c.Platform, c.Place, c.Workspace):
		return notHere
	case c.Place == "": // at none, as in App Home
		return ""
	case c.Direct():
		if !a.c.DirectMessages {
			return notDM
		}
	case len(a.c.Places) > 0 && !listed(a.c.Places, c.Platform, c.Place, c.Workspace):
		return notHere
	}
	return ""
}

// groups reports whether a place is the direct messages of a group of people, which its
// id does not say.
type groups func(ctx context.Context, c chat.Conversation) (bool, error)

// turnsAway is refuses that knows of groups, too: their messages are direct messages,
// unless the settings name their place. Only who must know asks the platform.
func (a access) turnsAway(ctx context.Context, c chat.Conversation, user string, isGroup groups) (why string, err error) {
	why = a.refuses(c, user)
	if why != "" || a.c.DirectMessages || isGroup == nil || c.Place == "" || c.Direct() || listed(a.c.Places, c.Platform, c.Place) {
		return why, nil
	}
	is, err := isGroup(ctx, c)
	if is {
		why = notDM
	}
	return why, err
}

func listed(list []string, platform string, ids ...string) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return id != "" && slices.Contains(list, platform+":"+id) })
}

// A guardedInbox is an inbox that lets in only what may come in. It remembers
// where the files are that come with it, before it comes in.
type guardedInbox struct {
	adapters.Inbox
	access  access
	groups  groups // may be nil
	files   *attachment.Store
	refused func(platform string)
	rate    *rate                                    // may be nil
	changed func(m adapters.Message, inputID string) // told of what was taken; may be nil
}

// A refusal is why a message was not taken, in words for its author.
type refusal string

func (r refusal) Error() string { return "refused: " + string(r) }

// Refused gives the words.
func (r refusal) Refused() string { return string(r) }

// Submit takes a message unless its author, or its place, is refused.
func (g *guardedInbox) Submit(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	if err := g.judge(ctx, m); err != nil {
		return adapters.Receipt{}, err
	}
	if why, told := g.rate.message(ctx, m); why != "" {
		if told {
			why = ""
		}
		return adapters.Receipt{}, refusal(why)
	}
	if err := g.remember(ctx, m); err != nil {
		return adapters.Receipt{}, err
	}
	r, err := g.Inbox.Submit(ctx, m)
	if err == nil && g.changed != nil {
		g.changed(m, r.InputID)
	}
	return r, err
}

// remember keeps where the files of a message are. It is harmless to repeat.
func (g *guardedInbox) remember(ctx context.Context, m adapters.Message) error {
	if m.Kind == chat.KindDelete {
		return g.files.Forget(ctx, m.Conversation, m.Message)
	}
	var files []attachment.File
	for _, a := range m.Attachments {
		files = append(files, attachment.File{Message: cmp.Or(m.FilesOf, m.Message), Attachment: a, Author: m.Author, At: m.At})
	}
	return g.files.Add(ctx, m.Conversation, files)
}

// Stop takes the wish to stop, likewise.
func (g *guardedInbox) Stop(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	if err := g.judge(ctx, m); err != nil {
		return adapters.Receipt{}, err
	}
	return g.Inbox.Stop(ctx, m)
}

func (g *guardedInbox) judge(ctx context.Context, m adapters.Message) error {
	// What took a message away must take effect also where its author may say no
	// more.
	if m.Kind == chat.KindDelete {
		return nil
	}
	why, err := g.access.turnsAway(ctx, m.Conversation, m.Author.ID, g.groups)
	if why == "" {
		return err
	}
	g.refused(m.Conversation.Platform)
	return refusal(why)
}
