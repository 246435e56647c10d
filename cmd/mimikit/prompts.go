package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"mimikit/config"
	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/tokens"
	"mimikit/prompts"
)

// promptsCmd is `mimikit prompts`.
type promptsCmd struct {
	Show  promptsShowCmd  `cmd:"" help:"Print what a model is given for a small example conversation, or one file."`
	Check promptsCheckCmd `cmd:"" help:"Try all prompt files: which are shadowed, what each costs, what an override leaves out."`
}

// promptsDir is where overrides are read from.
type promptsDir struct {
	Dir string `placeholder:"DIR" help:"Directory of overriding files, in place of the setting prompts.dir."`
}

// open loads the settings and the prompts in force.
func (d *promptsDir) open(s *settings) (config.Config, *prompts.Set, error) {
	cfg, err := s.load()
	if err != nil {
		return cfg, nil, err
	}
	cfg.Prompts.Dir = cmp.Or(d.Dir, cfg.Prompts.Dir)
	set, err := prompts.Open(cfg.Prompts.Dir)
	return cfg, set, err
}

type promptsShowCmd struct {
	promptsDir
	Agent string `arg:"" optional:"" default:"thinker" help:"Who is called: fold, planner, teller, teller-digest, thinker (the default), worker-expert or worker-standard."`
	Mode  string `placeholder:"MODE" help:"full, minimal or none; without it what the agent runs in."`
	Style string `enum:"native,block" default:"native" help:"How the model asks for actions: native (tool calls) or block (lines at the end of its text)."`
	File  string `placeholder:"NAME" help:"Print one file instead, like teller/voice; where it comes from is said on the error output."`
}

// Run prints a prompt, or a file.
func (c *promptsShowCmd) Run(std *streams, s *settings) error {
	cfg, set, err := c.open(s)
	if err != nil {
		return err
	}
	if c.File != "" {
		return showFile(std, set, c.File)
	}
	offer, err := offered(c.Agent)
	if err != nil {
		return err
	}
	style := action.Native
	if c.Style == "block" {
		style = action.Block
	}
	_, data := example(cfg, c.Agent, offer.Describe(style))
	data.Mode = prompts.Mode(c.Mode)
	p, err := set.Compose(c.Agent, data)
	if err != nil {
		return err
	}
	for _, m := range p.Messages() {
		if _, err := fmt.Fprintf(std.out, "=== %s\n%s\n", m.Role, m.Content); err != nil {
			return err
		}
	}
	if style == action.Native {
		return showTools(std.out, offer)
	}
	return nil
}

// showFile prints a file as it is, so that it can be kept as the beginning of an
// override.
func showFile(std *streams, set *prompts.Set, name string) error {
	f, err := set.File(name)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(std.err, "%s: %s\n", f.Path, from(f)); err != nil {
		return err
	}
	_, err = io.WriteString(std.out, strings.TrimRight(f.Text, "\n")+"\n")
	return err
}

func from(f prompts.File) string { return cmp.Or(f.Override, "built in") }

// showTools prints what goes along with the messages of a model that calls tools.
func showTools(out io.Writer, offer *action.Offer) error {
	for i, t := range offer.Tools() {
		if i == 0 {
			if _, err := fmt.Fprintln(out, "=== tools"); err != nil {
				return err
			}
		}
		var schema bytes.Buffer
		if err := json.Compact(&schema, t.Schema); err != nil {
			return fmt.Errorf("print the schema of %s: %w", t.Name, err)
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n  %s\n", t.Name, t.Description, &schema); err != nil {
			return err
		}
	}
	return nil
}

// offered is what an agent may do on behalf of an ordinary person. The teller's
// digest spells its one action out in its own prompt.
func offered(agent string) (*action.Offer, error) {
	all, err := action.Outline(action.Vocabulary()...)
	if err != nil {
		return nil, err
	}
	if agent == action.TellerDigest {
		agent = ""
	}
	return all.For(agent, chat.RoleUser), nil
}

// example is two successive calls of an agent as this deployment makes them.
func example(cfg config.Config, agent, actions string) (earlier, later prompts.Data) {
	earlier, later = prompts.Example(agent)
	for _, d := range []*prompts.Data{&earlier, &later} {
		d.Bot, d.Actions = cfg.Name, actions
		d.Final = agent == "thinker" && cfg.Teller.Format == config.Auto
	}
	return earlier, later
}

type promptsCheckCmd struct{ promptsDir }

// Run opens the prompts, which tries all of them; what is wrong is the error.
func (c *promptsCheckCmd) Run(std *streams, s *settings) error {
	cfg, set, err := c.open(s)
	if err != nil {
		return err
	}
	shadowed := 0
	files := newTable("FILE", "TOKENS", "FROM")
	for _, f := range set.Files() {
		if f.Override != "" {
			shadowed++
		}
		role := path.Base(path.Dir(f.Path))
		files.row(f.Path, tokens.Count(modelOf(cfg, role), f.Text), from(f))
	}
	if err := files.print(std.out); err != nil {
		return err
	}
	agents, err := reuse(cfg, set)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(std.out, "\nAn example, in tokens without tools: what is stable, and what two successive calls have in common."); err != nil {
		return err
	}
	if err := agents.print(std.out); err != nil {
		return err
	}
	warnings, err := set.Warnings()
	if err != nil {
		return err
	}
	for _, w := range warnings {
		if _, err := fmt.Fprintln(std.err, "warning:", w); err != nil {
			return err
		}
	}
	where := "; no directory shadows them"
	if cfg.Prompts.Dir != "" {
		where = fmt.Sprintf(", %d from %s", shadowed, cfg.Prompts.Dir)
	}
	_, err = fmt.Fprintf(std.out, "\n%d files hold%s. Warnings: %d.\n", len(set.Files()), where, len(warnings))
	return err
}

// reuse tells for each agent what a provider's prompt cache can take from one
// call for the next.
func reuse(cfg config.Config, set *prompts.Set) (*table, error) {
	t := newTable("AGENT", "STABLE", "WHOLE", "IN COMMON", "SHARE")
	for _, agent := range prompts.Agents() {
		offer, err := offered(agent)
		if err != nil {
			return nil, err
		}
		count := func(text string) int { return tokens.Count(modelOf(cfg, agent), text) }
		earlier, later := example(cfg, agent, offer.Describe(action.Native))
		var calls [2][]llm.Message
		stable := 0
		for i, d := range []prompts.Data{earlier, later} {
			p, err := set.Compose(agent, d)
			if err != nil {
				return nil, err
			}
			calls[i], stable = p.Messages(), count(p.System)
		}
		r := prompts.Shared(calls[0], calls[1], count)
		t.row(agent, stable, r.Total, r.Tokens, fmt.Sprintf("%d %%", 100*r.Tokens/max(r.Total, 1)))
	}
	return t, nil
}

// modelOf is the model that a role's or an agent's tokens are counted for.
func modelOf(cfg config.Config, who string) string {
	m := cfg.LLM.Models
	return cmp.Or(map[string]string{
		"teller": m.Teller, "teller-digest": m.Teller, "thinker": m.Thinker, "planner": m.Planner,
		"worker-standard": m.Standard, "worker-expert": m.Expert,
	}[who], cfg.LLM.Model)
}
