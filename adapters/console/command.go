package console

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// commands are what can be entered besides messages.
var commands = []struct{ name, what string }{
	{"/help", "shows this list"},
	{"/stop", "stops what is being worked on here"},
	{"/status", "shows how the bot is doing"},
	{"/quit", "leaves; what is being worked on goes on, and its answer is shown next time"},
}

// parse tells a command from a message: a command is a slash and a word, and two
// slashes are a message that begins with one. An empty line is neither.
func parse(line string) (command, message string) {
	line = strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(line, "//"); ok {
		return "", "/" + rest
	}
	if strings.HasPrefix(line, "/") {
		return strings.Fields(line)[0], ""
	}
	return "", line
}

// command carries one out; /quit is its caller's. It reports whether there is
// such a command and it did what it should.
func (s *session) command(ctx context.Context, name string) (ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	switch name {
	case "/help":
		s.screen.Note(help())
	case "/stop":
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
	case "/status":
		if s.t.o.Status == nil {
			s.screen.Note("There is no status to be had here.")
			return false
		}
		text, err := s.t.o.Status(ctx)
		if err != nil {
			s.screen.Note(fmt.Sprintf("The status cannot be had: %v", err))
			return false
		}
		s.screen.Note(text)
	default:
		s.screen.Note(fmt.Sprintf("There is no command `%s`.\n\n%s", strings.ReplaceAll(name, "`", "'"), help()))
		return false
	}
	return true
}

func help() string {
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, "- `%s` %s\n", c.name, c.what)
	}
	b.WriteString("\nAll else is a message. Begin it with `//` if it should begin with a slash; end a line with `\\` to go on in the next.")
	return b.String()
}
