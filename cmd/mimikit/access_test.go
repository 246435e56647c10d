package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/config"
	"mimikit/core/attachment"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

func TestAccess(t *testing.T) {
	t.Parallel()
	place := chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1.1"}
	elsewhere := chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C2"}
	direct := chat.Conversation{Platform: "slack", Workspace: "T1", Place: "D1"}
	home := chat.Conversation{Platform: "slack", Workspace: "T1"}
	terminal := chat.Conversation{Platform: "console", Workspace: "local", Place: "ann"}
	for _, c := range []struct {
		name string
		a    config.Access
		in   chat.Conversation
		user string
		want string
	}{
		{"everybody, everywhere", config.Access{DirectMessages: true}, place, "U1", ""},
		{"a denied user", config.Access{DeniedUsers: []string{"slack:U1"}}, place, "U1", notYou},
		{"the id on another platform", config.Access{DeniedUsers: []string{"discord:U1"}}, place, "U1", ""},
		{"not among the users", config.Access{Users: []string{"slack:U2"}}, place, "U1", notYou},
		{"among the users, and denied", config.Access{Users: []string{"slack:U1"}, DeniedUsers: []string{"slack:U1"}}, place, "U1", notYou},
		{"among the places", config.Access{Places: []string{"slack:C1"}}, place, "U1", ""},
		{"not among the places", config.Access{Places: []string{"slack:C1"}}, elsewhere, "U1", notHere},
		{"the whole workspace", config.Access{Places: []string{"slack:T1"}}, elsewhere, "U1", ""},
		{"a denied place of it", config.Access{Places: []string{"slack:T1"}, DeniedPlaces: []string{"slack:C2"}}, elsewhere, "U1", notHere},
		{"places do not bound direct messages", config.Access{Places: []string{"slack:C1"}, DirectMessages: true}, direct, "U1", ""},
		{"a denied workspace is so in direct messages, too", config.Access{DeniedPlaces: []string{"slack:T1"}, DirectMessages: true}, direct, "U1", notHere},
		{"and in App Home", config.Access{DeniedPlaces: []string{"slack:T1"}}, home, "U1", notHere},
		{"no direct messages", config.Access{}, direct, "U1", notDM},
		{"App Home is at no place", config.Access{Places: []string{"slack:C1"}}, home, "U1", ""},
		{"App Home of a denied user", config.Access{DeniedUsers: []string{"slack:U1"}}, home, "U1", notYou},
		{"the terminal holds the machine", config.Access{Users: []string{"slack:U1"}, Places: []string{"slack:C1"}}, terminal, "ann", ""},
	} {
		if got := (access{c.a}).refuses(c.in, c.user); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name  string
		a     config.Access
		admin bool
		ids   []string
		want  chat.Role
	}{
		{"nobody special", config.Access{PlatformAdmins: "admin"}, false, []string{"1"}, chat.RoleUser},
		{"an admin of the platform", config.Access{PlatformAdmins: "admin"}, true, []string{"1"}, chat.RoleAdmin},
		{"who is only an operator here", config.Access{PlatformAdmins: "operator"}, true, []string{"1"}, chat.RoleOperator},
		{"or nothing", config.Access{PlatformAdmins: "user"}, true, []string{"1"}, chat.RoleUser},
		{"a named operator", config.Access{Operators: []string{"discord:1"}}, false, []string{"1"}, chat.RoleOperator},
		{"a named operator who is an admin of the platform", config.Access{PlatformAdmins: "admin", Operators: []string{"discord:1"}}, true, []string{"1"}, chat.RoleAdmin},
		{"a named role", config.Access{Admins: []string{"discord:7"}}, false, []string{"1", "7"}, chat.RoleAdmin},
		{"nobody", config.Access{Admins: []string{"discord:"}}, false, []string{""}, chat.RoleUser},
	} {
		if got := (access{c.a}).role("discord", c.admin, c.ids...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// The direct messages of a group are direct messages, in whichever way somebody speaks
// there, unless the settings name the place; what cannot be found out lets nobody in.
func TestGroupsAreDirectMessages(t *testing.T) {
	t.Parallel()
	group := chat.Conversation{Platform: "slack", Workspace: "T1", Place: "G1"}
	place, direct := group, group
	place.Place, direct.Place = "C1", "D1"
	away := errors.New("Slack is away")
	for _, c := range []struct {
		name  string
		a     config.Access
		in    chat.Conversation
		isErr error
		want  string
		asks  bool
	}{
		{"allowed", config.Access{DirectMessages: true}, group, away, "", false},
		{"not allowed", config.Access{}, group, nil, notDM, true},
		{"named", config.Access{Places: []string{"slack:G1"}}, group, away, "", false},
		{"its workspace is named", config.Access{Places: []string{"slack:T1"}}, group, nil, notDM, true},
		{"another place", config.Access{}, place, nil, "", true},
		{"one person's", config.Access{}, direct, away, notDM, false},
		{"unknown", config.Access{}, group, away, "", true},
		{"a denied user", config.Access{DeniedUsers: []string{"slack:U1"}}, group, away, notYou, false},
	} {
		asked := false
		why, err := access{c.a}.turnsAway(t.Context(), c.in, "U1", func(_ context.Context, in chat.Conversation) (bool, error) {
			asked = true
			return in == group && c.isErr == nil, c.isErr
		})
		if why != c.want || asked != c.asks || asked && !errors.Is(err, c.isErr) || !asked && err != nil {
			t.Errorf("%s: %q, %v, asked %v; want %q", c.name, why, err, asked, c.want)
		}
	}
}

// Who speaks to the bot among several people on Slack is told that it does not answer
// there, whether in words or with a command; where direct messages are allowed it does.
func TestSlackGroupMessages(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for _, allowed := range []bool{false, true} {
		t.Run(fmt.Sprint(allowed), func(t *testing.T) {
			t.Parallel()
			s, settings := slackAt(t, slackfake.Options{})
			s.AddUser(slackfake.User{ID: "U0BOB", Name: "bob"})
			s.AddChannel(slackfake.Channel{ID: "G0TRIO", Kind: "mpim", Members: []string{"U0ANN", "U0BOB", slackfake.BotUser}})
			d := deploy(t, echo, append(settings, "MIMIKIT_ACCESS_DIRECT_MESSAGES="+fmt.Sprint(allowed))...)
			d.serve()
			s.Say(slackfake.Say{Channel: "G0TRIO", Text: "say one"})
			id := s.Slash("U0ANN", "G0TRIO", "/mimikit", "tasks")
			storetest.Eventually(t, "what Ann reads", func() error {
				told, answer := "", ""
				for _, w := range s.Whispers() {
					told += w.Text
				}
				for _, a := range s.Answers() {
					if a.Interaction == id {
						answer = a.Body
					}
				}
				said := texts(s.Messages("G0TRIO", ""))
				if allowed && (!slices.Equal(said, []string{"You said one"}) || !strings.Contains(answer, "no tasks")) ||
					!allowed && (!strings.Contains(told, notDM) || !strings.Contains(answer, notDM) || len(said) > 0) {
					return fmt.Errorf("said %q, whispered %q, answered %s", said, told, answer)
				}
				return nil
			})
			s.Say(slackfake.Say{Text: "@bot say two"})
			storetest.Eventually(t, "the answer in a channel", func() error {
				for _, m := range s.Posted() {
					if m.Text == "You said two" {
						return nil
					}
				}
				return errors.New("none yet")
			})
			if n := len(d.model.Calls()); n != map[bool]int{false: 1, true: 2}[allowed] {
				t.Errorf("the model was asked %d times", n)
			}
		})
	}
}

// The file of a message that somebody asked about goes with that message, not with the
// wish to talk about it.
func TestFilesGoWithTheirMessage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		files := attachment.New(s.Client, channel.Keys{Prefix: storetest.Prefix(t), Partitions: 4}, nil)
		g := &guardedInbox{Inbox: &takesAll{}, files: files}
		c := chat.Conversation{Platform: "discord", Workspace: "1", Place: "7", Thread: "70"}
		for _, m := range []adapters.Message{
			{Message: "90", FilesOf: "70", Attachments: []chat.Attachment{{ID: "1", Name: "theirs", URL: "https://files.example/1"}}},
			{Message: "91", Attachments: []chat.Attachment{{ID: "2", Name: "own", URL: "https://files.example/2"}}},
			{Message: "70", Kind: chat.KindDelete},
		} {
			m.Conversation = c
			if _, err := g.Submit(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		list, err := files.List(t.Context(), c)
		if err != nil || len(list) != 1 || list[0].Message != "91" {
			t.Errorf("kept %+v, %v", list, err)
		}
	})
}
