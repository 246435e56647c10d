package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// commands are what can be entered besides messages and Options.Commands.
var commands = []Command{
	{"help", "help [command]", "shows this list, or more of one command"},
	{"stop", "stop", "stops what is being worked on here; tasks go on"},
	{"quit", "quit", "leaves; what is being worked on goes on, and its answer is shown next time"},
}

// parse tells a command from a message: a command is a slash and a word, and two
// slashes are a message that begins with one. An empty line is neither. Of a
// command, text is what follows it.
func parse(line string) (command, text string) {
	line = strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(line, "//"); ok {
		return "", "/" + rest
	}
	if strings.HasPrefix(line, "/") {
		command = strings.Fields(line)[0]
		return command, strings.TrimSpace(line[len(command):])
	}
	return "", line
}

// command carries one out; /quit is its caller's. It reports whether there is
// such a command and it did what it should.
func (s *session) command(ctx context.Context, name, rest string) (ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	switch {
	case name == "/help" && (rest == "" || s.t.o.Commands == nil || s.ours(strings.Fields(rest)[0])):
		s.screen.Note(s.help())
		return true
	case name == "/stop":
		return s.stop(ctx)
	case s.t.o.Commands == nil:
		s.screen.Note(fmt.Sprintf("There is no command `%s`.\n\n%s", strings.ReplaceAll(name, "`", "'"), s.help()))
		return false
	}
	words := append([]string{strings.TrimPrefix(name, "/")}, strings.Fields(rest)...)
	if words[0] == "help" {
		words[1] = strings.TrimPrefix(words[1], "/")
	}
	text, err := s.t.o.Commands.Run(ctx, s.t.author, s.t.talk, words)
	if err != nil {
		reason, refused := refusal(err)
		if !refused {
			reason = fmt.Sprintf("`%s` could not be done: %v", name, err)
		}
		s.screen.Note(reason)
		return false
	}
	s.screen.Note(text)
	return true
}

func (s *session) stop(ctx context.Context) (ok bool) {
	_, err := s.t.o.Inbox.Stop(ctx, s.message(""))
	if reason, refused := refusal(err); refused {
		s.screen.Note(reason)
		return false
	}
	if err != nil {
		s.screen.Note(fmt.Sprintf("I could not pass on that it should stop: %v", err))
		return false
	}
	s.screen.Note("Asked to stop.")
	return true
}

// ours reports whether a word names one of the terminal's own commands.
func (s *session) ours(word string) bool {
	word = strings.TrimPrefix(word, "/")
	return slices.ContainsFunc(commands, func(c Command) bool { return c.Name == word })
}

func (s *session) help() string {
	list := commands
	if s.t.o.Commands != nil {
		more := slices.DeleteFunc(slices.Clone(s.t.o.Commands.List()), func(c Command) bool { return s.ours(c.Name) })
		list = slices.Concat(commands[:1], more, commands[1:])
	}
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "- `/%s` %s\n", c.Usage, c.Short)
	}
	b.WriteString("\nAll else is a message. Begin it with `//` if it should begin with a slash; end a line with `\\` to go on in the next.")
	return b.String()
}
