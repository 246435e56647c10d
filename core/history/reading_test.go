package history

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/chat"
)

var thread = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1.0"}

// input is what a person did to message m at second n.
func input(id string, kind chat.InputKind, m, text string, n int) chat.UserInput {
	return chat.UserInput{
		ID: id, Conversation: thread, Kind: kind, Message: m, Text: text, Author: chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser},
		At: epoch.Add(time.Duration(n) * time.Second),
	}
}

// stored spells inputs as steps do.
func stored(inputs ...chat.UserInput) []string {
	var out []string
	for _, in := range inputs {
		out = append(out, Encode(InputLine(in)))
	}
	return out
}

// readings are lines as "id note text".
func readings(lines []chat.Line) []string {
	out := []string{}
	for _, l := range lines {
		out = append(out, l.ID+" "+l.Note+" "+l.Text)
	}
	return out
}

// What a person took back or changed is read so, and nothing else is.
func TestCurrent(t *testing.T) {
	t.Parallel()
	const msg, edit, del = chat.KindMessage, chat.KindEdit, chat.KindDelete
	button := input("a1", chat.KindAnswer, "m1", "yes", 4)
	button.Option = "yes"
	first := InputLine(input("e1", edit, "m1", "@mimi new", 5))
	first.Note = "" // the edit that first mentions the bot is noted as what was said
	for _, c := range []struct {
		name string
		in   []string
		want []string
	}{
		{"nothing happened", stored(input("i1", msg, "m1", "one", 1), input("i2", msg, "m2", "two", 2)), []string{"i1  one", "i2  two"}},
		{
			"deleted", stored(input("i1", msg, "m1", "one", 1), input("i2", msg, "m2", "two", 2), input("x1", del, "m1", "", 3)),
			[]string{"i1 deleted ", "i2  two", "x1 deleted "},
		},
		{
			"deleted before it was heard", stored(input("x1", del, "m1", "", 3), input("i1", msg, "m1", "one", 1)),
			[]string{"x1 deleted ", "i1 deleted "},
		},
		{
			"edited", stored(input("i1", msg, "m1", "one", 1), input("i2", msg, "m2", "two", 2), input("e1", edit, "m1", "ONE", 3), input("e2", edit, "m1", "one!", 4)),
			[]string{"i1 replaced ", "i2  two", "e1 replaced ", "e2 edited one!"},
		},
		{
			"edited, then deleted", stored(input("i1", msg, "m1", "one", 1), input("e1", edit, "m1", "ONE", 3), input("x1", del, "m1", "", 4)),
			[]string{"i1 deleted ", "e1 deleted ", "x1 deleted "},
		},
		{
			"an edit that is heard after the delete", stored(input("i1", msg, "m1", "one", 1), input("x1", del, "m1", "", 4), input("e1", edit, "m1", "ONE", 3)),
			[]string{"i1 deleted ", "x1 deleted ", "e1 deleted "},
		},
		{
			"an edit that first mentions the bot", append(stored(input("i1", msg, "m1", "new", 1)), Encode(first)),
			[]string{"i1 replaced ", "e1  @mimi new"},
		},
		{
			"what was deleted is not here", stored(input("i2", msg, "m2", "two", 2), input("x1", del, "m1", "", 3)),
			[]string{"i2  two", "x1 deleted "},
		},
		{
			"a button below a message is not the message", []string{Encode(InputLine(button)), stored(input("x1", del, "m1", "", 5))[0]},
			[]string{"a1  yes", "x1 deleted "},
		},
		{
			"a typed answer is one", stored(input("a1", chat.KindAnswer, "m1", "my password", 4), input("x1", del, "m1", "", 5)),
			[]string{"a1 deleted ", "x1 deleted "},
		},
		{
			"a stopped message keeps that it was deleted", stored(input("s1", chat.KindStop, "m1", "stop it", 4), input("x1", del, "m1", "", 5)),
			[]string{"s1 deleted ", "x1 deleted "},
		},
		{
			"signs in a message's id", stored(input("i1", msg, "a/b//c?d", "one", 1), input("i2", msg, "/b//c?d", "two", 2), input("x1", del, "a/b//c?d", "", 3)),
			[]string{"i1 deleted ", "i2  two", "x1 deleted "},
		},
		{
			"a replayed dead letter comes once", stored(input("i1", msg, "m1", "one", 1), input("e1", edit, "m1", "ONE", 3), input("i1", msg, "m1", "one", 1)),
			[]string{"i1 replaced ", "e1 edited ONE"},
		},
		{
			"others' lines are about no message", []string{
				Encode(chat.Line{ID: "3/m1", Role: chat.LineSystem, Text: "task", At: epoch}), stored(input("x1", del, "m1", "", 5))[0],
				Encode(chat.Line{ID: "i9", Role: chat.LineUser, Text: "of the first build", At: epoch}),
			},
			[]string{"3/m1  task", "x1 deleted ", "i9  of the first build"},
		},
	} {
		s := New(nil, nil, nil)
		lines := s.decode("c", c.in, 0)
		current(lines)
		if diff := cmp.Diff(c.want, readings(texts(lines))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
		for i, v := range c.in { // whoever decodes a line is not told of its subject
			l, err := Decode(v)
			if err != nil || l.ID != s.decode("c", c.in[i:i+1], 0)[0].line.ID {
				t.Errorf("%s: line %d has id %q, %v", c.name, i, l.ID, err)
			}
		}
	}
}
