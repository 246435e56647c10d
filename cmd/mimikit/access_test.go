package main

import (
	"testing"

	"mimikit/config"
	"mimikit/core/chat"
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
