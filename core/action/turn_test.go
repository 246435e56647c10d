package action

import (
	"testing"

	"mimikit/core/chat"
)

func TestATurnHasTheLeastRightsOfItsAuthors(t *testing.T) {
	t.Parallel()
	operator := chat.Author{ID: "U5", Role: chat.RoleOperator}
	bot := chat.Author{ID: "B1", Role: chat.RoleAdmin, Bot: true}
	bob := chat.Author{ID: "U2", Role: chat.RoleUser}
	for name, c := range map[string]struct {
		authors   []chat.Author
		requester chat.Author
		rights    chat.Role
		behalf    string
	}{
		"one":                          {[]chat.Author{root}, ann, chat.RoleAdmin, "U9"},
		"the least of several":         {[]chat.Author{root, operator, root}, ann, chat.RoleOperator, "U5"},
		"of equals the last":           {[]chat.Author{ann, bob, root}, root, chat.RoleUser, "U2"},
		"a bot, whatever it is":        {[]chat.Author{bot}, root, chat.RoleUser, "B1"},
		"a person before a bot":        {[]chat.Author{ann, bot}, root, chat.RoleUser, "U1"},
		"a person after a bot":         {[]chat.Author{bot, ann}, root, chat.RoleUser, "U1"},
		"a bot beside an admin":        {[]chat.Author{root, bot}, root, chat.RoleUser, "B1"},
		"an unknown role":              {[]chat.Author{{ID: "U7"}, root}, root, chat.RoleUser, "U7"},
		"a role beyond all":            {[]chat.Author{{ID: "U7", Role: 9}}, root, chat.RoleUser, "U7"},
		"results, for their requester": {nil, root, chat.RoleUser, "U9"},
		"nobody":                       {nil, chat.Author{}, chat.RoleUser, ""},
	} {
		got := NewTurn(here, c.authors, c.requester, epoch, "tr")
		if got.Rights != c.rights || got.OnBehalfOf.ID != c.behalf {
			t.Errorf("%s: %v for %q; want %v for %q", name, got.Rights, got.OnBehalfOf.ID, c.rights, c.behalf)
		}
	}
}
