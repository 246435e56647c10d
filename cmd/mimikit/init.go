package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/charmbracelet/x/term"
	"go.yaml.in/yaml/v3"

	"mimikit/config"
)

// initCmd asks what the bot needs to know and writes settings that hold.
type initCmd struct {
	Dir   string `default:"." placeholder:"DIR" help:"Where to write mimikit.yaml and mimikit.env."`
	Force bool   `help:"Replace files that are there."`
}

// Run asks, checks the answers together, and writes nothing before they hold.
func (c *initCmd) Run(ctx context.Context, std *streams, _ *settings) error {
	file, env := filepath.Join(c.Dir, "mimikit.yaml"), filepath.Join(c.Dir, "mimikit.env")
	for _, name := range []string{file, env} {
		if _, err := os.Lstat(name); err == nil && !c.Force {
			return fmt.Errorf("%s is there already; move it away, or add --force to replace it", name)
		}
	}
	q := &questions{in: bufio.NewReader(std.in), out: std.out, file: std.in, ctx: ctx}
	q.tell("This writes %s, and %s for the secrets.\nAn empty answer takes what stands in brackets. Nothing is written before the end.\n", file, env)
	set, secrets := answers(q)
	if q.err != nil {
		return fmt.Errorf("ask for the settings: %w", q.err)
	}
	text, err := yaml.Marshal(set)
	if err != nil {
		return fmt.Errorf("write the settings: %w", err)
	}
	head := "# Settings of Mimikit; `mimikit config keys` lists all there are. Secrets are in\n# mimikit.env.\n"
	if len(set) == 0 {
		text = nil
	}
	if err := holds(head+string(text), secrets); err != nil {
		return fmt.Errorf("the answers do not hold together, and nothing was written:\n%w", err)
	}
	if err := c.write(file, head+string(text), 0o644); err != nil {
		return err
	}
	if err := c.write(env, envFile(secrets), 0o600); err != nil {
		return err
	}
	q.tell("\nWritten, and the settings hold. Next:\n\n  set -a; . %s; set +a\n  mimikit --config %s doctor\n  mimikit --config %s serve\n", env, file, file)
	return q.err
}

// holds tells what is wrong with settings that are not written yet.
func holds(text string, secrets []string) error {
	dir, err := os.MkdirTemp("", "mimikit-init-")
	if err != nil {
		return fmt.Errorf("check the settings: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "mimikit.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("check the settings: %w", err)
	}
	_, err = config.Load(file, append(os.Environ(), secrets...))
	return err
}

// answers asks one thing after the other. What is left at its default is not set.
func answers(q *questions) (set map[string]any, secrets []string) {
	set = map[string]any{}
	put := func(key, value string) {
		section, name, nested := strings.Cut(key, ".")
		if !nested {
			set[key] = value
			return
		}
		m, _ := set[section].(map[string]any)
		if m == nil {
			m = map[string]any{}
			set[section] = m
		}
		m[name] = value
	}
	secret := func(name, what, hint string) {
		if s := q.secret(what, hint); s != "" {
			secrets = append(secrets, name+"="+s)
		}
	}
	def := config.Default()
	if name := q.ask("What is the bot called?", def.Name); name != def.Name {
		put("name", name)
	}
	if q.yes("Does it have a model of its own, behind an OpenAI-compatible endpoint?", true) {
		const openAI = "https://api.openai.com/v1"
		if url := q.ask("Address of the endpoint", openAI); url != openAI {
			put("llm.baseURL", url)
		}
		put("llm.model", q.ask("Name of the model", "gpt-5.2"))
		secret("MIMIKIT_LLM_KEY", "Key of the endpoint", "")
	} else {
		q.tell("Then it asks an Ollama on this machine, else a small demo model answers.\n")
	}
	if q.yes("Is it on Slack?", false) {
		q.tell("`mimikit slack manifest` prints the app; the README tells the steps.\n")
		secret("MIMIKIT_SLACK_BOT_TOKEN", "Bot token", "xoxb-…")
		secret("MIMIKIT_SLACK_APP_TOKEN", "App-level token", "xapp-…")
	}
	if q.yes("Is it on Discord?", false) {
		secret("MIMIKIT_DISCORD_TOKEN", "Bot token", "")
	}
	if q.yes("Does it use a Redis that runs already? (Else it starts one of its own.)", false) {
		put("redis.mode", "single")
		set["redis"].(map[string]any)["addrs"] = []string{q.ask("Address of the server", "localhost:6379")}
		secret("MIMIKIT_REDIS_PASSWORD", "Its password, if it has one", "")
	}
	return set, secrets
}

// write replaces a file at once, so that a crash leaves the old one or the new.
func (c *initCmd) write(name, text string, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".mimikit-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// envFile spells secrets for a shell and for systemd alike.
func envFile(secrets []string) string {
	var b strings.Builder
	b.WriteString("# Secrets of Mimikit. Read by the shell (set -a; . ./mimikit.env) and by systemd.\n")
	for _, s := range secrets {
		name, value, _ := strings.Cut(s, "=")
		fmt.Fprintf(&b, "%s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return b.String()
}

// questions asks a person. After a failure every answer is empty, and err says why.
type questions struct {
	ctx  context.Context //nolint:containedctx // as long as the questions
	in   *bufio.Reader
	out  io.Writer
	file *os.File
	err  error
}

func (q *questions) tell(format string, args ...any) {
	if q.err == nil {
		_, q.err = fmt.Fprintf(q.out, format, args...)
	}
}

// ask gives what is answered, or the default.
func (q *questions) ask(what, def string) string {
	q.tell("%s [%s] ", what, def)
	if s := q.line(); s != "" {
		return s
	}
	return def
}

func (q *questions) yes(what string, def bool) bool {
	hint := "y/N"
	if def {
		hint = "Y/n"
	}
	for q.err == nil {
		q.tell("%s [%s] ", what, hint)
		switch strings.ToLower(q.line()) {
		case "":
			return def
		case "y", "yes":
			return true
		case "n", "no":
			return false
		}
		q.tell("Please answer y or n.\n")
	}
	return false
}

// secret asks for something that is not shown while it is typed.
func (q *questions) secret(what, hint string) string {
	if hint != "" {
		what += " (" + hint + ")"
	}
	q.tell("%s, not shown: ", what)
	if q.err != nil || q.in.Buffered() > 0 || !term.IsTerminal(q.file.Fd()) {
		return q.line()
	}
	shown, err := term.GetState(q.file.Fd())
	if err != nil {
		q.err = err
		return ""
	}
	s, err := q.await(func() (string, error) {
		b, err := term.ReadPassword(q.file.Fd())
		return string(b), err
	})
	if q.ctx.Err() != nil {
		err = errors.Join(err, term.Restore(q.file.Fd(), shown)) // who reads does not come to it
	}
	q.tell("\n")
	q.err = errors.Join(q.err, err)
	return strings.TrimSpace(s)
}

// await gives what a read that blocks comes to, or why it is no longer waited for.
// Then the reader is left behind, and the program ends.
func (q *questions) await(read func() (string, error)) (string, error) {
	type line struct {
		text string
		err  error
	}
	got := make(chan line, 1)
	go func() {
		s, err := read()
		got <- line{s, err}
	}()
	select {
	case l := <-got:
		return l.text, l.err
	case <-q.ctx.Done():
		return "", context.Cause(q.ctx)
	}
}

func (q *questions) line() string {
	if q.err != nil {
		return ""
	}
	if q.err = context.Cause(q.ctx); q.err != nil {
		return ""
	}
	s, err := q.await(func() (string, error) { return q.in.ReadString('\n') })
	if err != nil && (!errors.Is(err, io.EOF) || s == "") {
		q.err = err
		if errors.Is(err, io.EOF) {
			q.err = errors.New("the answers ended before the questions")
		}
	}
	return strings.TrimSpace(s)
}
