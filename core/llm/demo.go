package llm

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// MaxDemoWait is the longest the demo model thinks in one call.
const MaxDemoWait = 10 * time.Minute

// DemoOptions are for tests and for show; the zero value works.
type DemoOptions struct {
	Now  func() time.Time                                 // nil means time.Now
	Wait func(ctx context.Context, d time.Duration) error // waits for d or fails with the context's error; nil means a timer
	Pace time.Duration                                    // pause after each streamed word; 0 for none
}

// demo is the model for the first five minutes: a few rules, no AI, no network.
// It says so itself, and answers such that a newcomer can see everything around
// a model at work. It is never chosen where a real model is configured.
type demo struct{ options DemoOptions }

// NewDemo returns the built-in stand-in for a model. It answers the newest
// inputs of a prompt, each by itself, in English, German, Chinese or Spanish as
// they were asked. Its errors are those of an ended context, all Transient.
// It counts words for tokens.
func NewDemo(opts DemoOptions) Model {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Wait == nil {
		opts.Wait = wait
	}
	return &demo{opts}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Complete implements [Model].
func (d *demo) Complete(ctx context.Context, req Request) (Response, error) {
	start := d.options.Now()
	res := Response{Model: "demo", Finish: "stop"}
	for _, m := range req.Messages {
		res.Usage.Prompt += len(strings.Fields(m.Content))
	}
	out := &speech{demo: d, ctx: ctx, limit: req.MaxTokens, onDelta: req.OnDelta}
	if err := d.speak(ctx, req, out); err != nil {
		return Response{}, err
	}
	if out.full {
		res.Finish = "length"
	}
	res.Text = out.text.String()
	res.Usage.Completion = out.words
	res.Took = d.options.Now().Sub(start)
	return res, nil
}

func (d *demo) speak(ctx context.Context, req Request, out *speech) error {
	p := readDemoPrompt(req.Messages)
	switch {
	case req.Agent == "teller-digest":
		return out.say(`@digest_context summary="` + quoted.Replace(p.digest()) + `"`)
	case req.Agent == "teller" && p.decision != "":
		return out.say(p.decision)
	}
	patience := MaxDemoWait
	var said bool
	part := func(text string) error {
		if said {
			text = "\n\n" + text
		}
		said = true
		return out.say(text)
	}
	for _, r := range p.results {
		lang := detect("", userTexts(p.history))
		if err := part(fmt.Sprintf(saysResult[lang], r.title, r.status, clip(r.text, 500))); err != nil {
			return err
		}
	}
	for _, a := range p.asks() {
		text, err := d.answer(ctx, a, &patience)
		if err != nil {
			return err
		}
		if len(p.inputs) > 1 {
			text = "> " + clip(strings.Join(strings.Fields(a.text), " "), 80) + "\n\n" + text
		}
		if err := part(text); err != nil {
			return err
		}
	}
	if !said {
		return part(saysEmpty[english] + " " + saysIntro[english])
	}
	return nil
}

// answer thinks as long as it was told to, and then answers by the rules.
func (d *demo) answer(ctx context.Context, a *ask, patience *time.Duration) (string, error) {
	asked, ok := a.thinkTime()
	if !ok {
		return a.answer(d.options.Now()), nil
	}
	took := min(asked, *patience)
	*patience -= took
	if err := d.options.Wait(ctx, took); err != nil {
		if ctx.Err() != nil {
			err = stopped(ctx)
		}
		return "", &Error{Kind: Transient, Err: fmt.Errorf("demo model, thinking for %v: %w", took, err)}
	}
	text := fmt.Sprintf(saysThought[a.lang], units(took))
	if took < asked {
		text += saysThoughtCut[a.lang]
	}
	return text, nil
}

// quoted escapes a value of an action line.
var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// digest is what inputs and results come down to: with no wits to sum them up,
// all of them, as they are.
func (p *demoPrompt) digest() string {
	var lines []string
	for _, in := range p.inputs {
		text := in.text
		if len(p.inputs)+len(p.results) > 1 && in.from != "" {
			text = in.from + ": " + text
		}
		lines = append(lines, text)
	}
	for _, r := range p.results {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s (%s): %s", r.title, r.status, clip(r.text, 300))))
	}
	return strings.Join(lines, "\n")
}

// A speech is an answer on its way out, word by word.
type speech struct {
	demo    *demo
	ctx     context.Context
	limit   int // words; 0 for no limit
	onDelta func(string)

	text  strings.Builder
	words int
	full  bool
}

func (s *speech) say(text string) error {
	for _, word := range splitWords(text) {
		if s.full = s.full || s.limit > 0 && s.words >= s.limit; s.full {
			return nil
		}
		if s.ctx.Err() != nil {
			return &Error{Kind: Transient, Err: fmt.Errorf("demo model: %w", stopped(s.ctx))}
		}
		s.text.WriteString(word)
		s.words++
		if s.onDelta == nil {
			continue
		}
		s.onDelta(word)
		if s.demo.options.Pace > 0 {
			// An error here is the context's, which the next word tells.
			_ = s.demo.options.Wait(s.ctx, s.demo.options.Pace)
		}
	}
	return nil
}

// splitWords cuts text behind spaces, and Chinese behind every sign. The words
// joined are the text.
func splitWords(text string) []string {
	var words []string
	start, space := 0, false
	for i, r := range text {
		if i > start && (unicode.Is(unicode.Han, r) || space && !unicode.IsSpace(r)) {
			words = append(words, text[start:i])
			start = i
		}
		space = unicode.IsSpace(r)
	}
	if start < len(text) {
		words = append(words, text[start:])
	}
	return words
}
