package action

import (
	"time"

	"mimikit/core/chat"
)

// A Turn is on whose behalf and with which rights actions run. It is filled from
// verified platform ids; nothing that a model or a text says changes it.
type Turn struct {
	Conversation chat.Conversation
	Authors      []chat.Author // of the inputs, in the order in which they were accepted; none when only results came
	OnBehalfOf   chat.Author   // whose action it is; recorded with every call
	Rights       chat.Role     // the least among the authors
	Now          time.Time     // of the turn, UTC
	TraceID      string
	Traceparent  string // of the step or run that the actions belong to; "" while nobody traces
}

// NewTurn works out rights and author of a turn. With authors, it is theirs, and
// requester is ignored. Without, the turn is one of results, or of a worker: it
// acts for the requester with a user's rights, since no result carries more.
func NewTurn(c chat.Conversation, authors []chat.Author, requester chat.Author, now time.Time, traceID string) Turn {
	t := Turn{
		Conversation: c, Authors: authors, OnBehalfOf: requester,
		Rights: LeastRights(authors), Now: now.UTC(), TraceID: traceID,
	}
	if len(authors) > 0 {
		t.OnBehalfOf = bearer(authors, t.Rights)
	}
	return t
}

// LeastRights is the least role among authors. The lowest there is, RoleUser,
// goes for bots, whatever they are configured as, for authors whose role is
// unknown, and for nobody at all.
func LeastRights(authors []chat.Author) chat.Role {
	if len(authors) == 0 {
		return chat.RoleUser
	}
	least := rightsOf(authors[0])
	for _, a := range authors[1:] {
		least = min(least, rightsOf(a))
	}
	return least
}

func rightsOf(a chat.Author) chat.Role {
	if a.Bot || a.Role < chat.RoleUser || a.Role > chat.RoleAdmin {
		return chat.RoleUser
	}
	return a.Role
}

// bearer is the author whose rights the turn has: of several the one who spoke
// last, and a person before a bot.
func bearer(authors []chat.Author, rights chat.Role) chat.Author {
	var found chat.Author
	for _, a := range authors {
		if rightsOf(a) == rights && (found.ID == "" || found.Bot || !a.Bot) {
			found = a
		}
	}
	return found
}
