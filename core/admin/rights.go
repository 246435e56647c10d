package admin

import (
	"strings"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// role is what the caller may do. Who holds the machine is at least an admin.
func (c Caller) role() chat.Role {
	if c.Owner {
		return chat.RoleAdmin
	}
	return max(c.Author.Role, chat.RoleUser)
}

// same reports whether two conversations belong to one workspace. What lies
// outside of any is nobody's but its people's.
func same(a, b chat.Conversation) bool {
	return a.Platform == b.Platform && a.Workspace == b.Workspace && a.Workspace != ""
}

// own reports whether the caller asked for a task. Ids are a workspace's own;
// where there is no workspace, the platform's.
func (c Caller) own(t task.Task) bool {
	a, b := c.Conversation, t.Conversation
	return c.Author.ID != "" && c.Author.ID == t.Requester.ID && a.Platform == b.Platform &&
		(a.Workspace == b.Workspace || a.Workspace == "" || b.Workspace == "")
}

// reaches reports whether a conversation lies within what the caller oversees.
func (c Caller) reaches(in chat.Conversation) bool {
	return c.Owner || c.role() >= chat.RoleOperator && same(c.Conversation, in)
}

// hidden reports whether a task is only between parts of the program. A step of a
// plan is not, though it is the planner's to tell of its result.
func hidden(t task.Task) bool { return t.Internal && t.ParentTaskID == "" }

// sees reports whether a task exists for the caller. What is only between parts
// of the program is shown to admins.
func (c Caller) sees(t task.Task) bool {
	if hidden(t) && c.role() < chat.RoleAdmin {
		return false
	}
	return c.own(t) || c.reaches(t.Conversation)
}

// reads reports whether what was said in a conversation may stand in the answer.
// own says that the caller said it.
func (q *query) reads(in chat.Conversation, own bool) bool {
	switch {
	case q.c.Owner && q.c.Private, in == q.c.Conversation:
		return true
	case !q.c.Private && !q.o.Direct(q.c.Conversation):
		return false
	}
	return own || !q.o.Direct(in)
}

func (q *query) readsTask(t task.Task) bool { return q.reads(t.Conversation, q.c.own(t)) }

// Direct reports whether a conversation is between one person and the bot, as far as
// the ids of the platforms tell.
func Direct(c chat.Conversation) bool {
	switch c.Platform {
	case "slack":
		return strings.HasPrefix(c.Place, "D")
	case "discord":
		return c.Workspace == ""
	}
	return false
}

// withheld stands for what may not be read where the answer is shown.
const withheld = "(said elsewhere)"

// title is what a task is about, as far as the answer may say.
func (q *query) title(t task.Task) string {
	if !q.readsTask(t) {
		return withheld
	}
	return clean(t.Title)
}

// asker names who asked for a task.
func (q *query) asker(t task.Task) string {
	if q.c.own(t) {
		return "you"
	}
	return personName(t.Requester)
}

func personName(a chat.Author) string {
	name := clean(a.Name)
	switch {
	case name == "" && a.ID == "":
		return "nobody"
	case name == "":
		return clean(a.ID)
	}
	return name
}
