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
	Step time.Duration                                    // before each step of a task, so that it can be seen at work; 0 means 1.5 s, below 0 none
}

// demo is the model for the first five minutes: a few rules, no AI, no network.
// It says so itself, and answers such that a newcomer can see everything around
// a model at work: answers, tasks, progress, questions, triggers, notes. It acts
// only with what it is offered, and only on what a person says now: never on
// words of histories, results, files and pages. It tells what came of an action
// from what it is told, and makes nothing up. It is never chosen where a real
// model is configured.
type demo struct{ options DemoOptions }

// NewDemo returns the built-in stand-in for a model. It answers the newest
// inputs of a prompt, each by itself, in English, German, Chinese or Spanish as
// they were asked; it also plays a standard worker, the planner, and who folds
// histories. Tools are called natively, or by a block of actions where the
// system prompt describes one. Its errors are those of an ended context, all
// Transient. It counts words for tokens.
func NewDemo(opts DemoOptions) Model {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Wait == nil {
		opts.Wait = wait
	}
	if opts.Step == 0 {
		opts.Step = 1500 * time.Millisecond
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
	calls, err := d.speak(ctx, req, out)
	if err != nil {
		return Response{}, err
	}
	if len(calls) > 0 {
		res.ToolCalls, res.Finish = calls, "tool_calls"
	}
	if out.full {
		res.Finish = "length"
	}
	res.Text = out.text.String()
	res.Usage.Completion = out.words
	for _, c := range calls {
		res.Usage.Completion += 1 + len(strings.Fields(c.Arguments))
	}
	res.Took = d.options.Now().Sub(start)
	return res, nil
}

// speak answers as the agent that is asked. What it says goes to out; native
// calls are returned.
func (d *demo) speak(ctx context.Context, req Request, out *speech) ([]ToolCall, error) {
	p := readDemoPrompt(req)
	now := p.now
	if now.IsZero() {
		now = d.options.Now().UTC()
	}
	switch {
	case req.Agent == "teller-digest" && !p.blocks && p.may("digest_context"):
		return d.act(&p, []demoCall{{"digest_context", map[string]any{"summary": p.digest()}}}, out)
	case req.Agent == "teller-digest":
		return nil, out.say(`@digest_context summary="` + quoted.Replace(p.digest()) + `"`)
	case req.Agent == "teller" && p.decision != "":
		return nil, out.say(p.decision)
	case req.Agent == "fold":
		return nil, out.say(p.fold())
	case req.Agent == "planner" && p.request.text != "":
		return d.end(&p, p.plan(now), out)
	case req.Agent == "worker-standard" && p.request.text != "":
		call, pause := p.job(d.options.Step).next(&p)
		if err := d.pause(ctx, pause, "working"); err != nil {
			return nil, err
		}
		return d.end(&p, call, out)
	}
	t := p.talk(now)
	if calls := t.calls(); len(calls) > 0 {
		return d.act(&p, calls, out)
	}
	return nil, d.talk(ctx, t, out)
}

// act makes calls, in the way that is offered.
func (d *demo) act(p *demoPrompt, calls []demoCall, out *speech) ([]ToolCall, error) {
	if p.blocks {
		out.limit = 0 // half a block does nothing
		return nil, out.say(actionBlock(calls))
	}
	return p.toolCalls(calls), nil
}

// end takes a step; one that is not offered, as where there are no tools at all,
// is put in words.
func (d *demo) end(p *demoPrompt, c demoCall, out *speech) ([]ToolCall, error) {
	if p.may(c.name) {
		return d.act(p, []demoCall{c}, out)
	}
	for _, key := range []string{"output", "error", "question"} {
		if text, ok := c.args[key].(string); ok {
			return nil, out.say(text)
		}
	}
	return nil, out.say(fmt.Sprintf(saysNotOffered[detect(p.request.text, nil)], c.name) + "\n\n" + c.json())
}

// talk says what there is to say to people, once nothing is left to do.
func (d *demo) talk(ctx context.Context, t *talk, out *speech) error {
	patience := MaxDemoWait
	var said bool
	part := func(text string) error {
		if said {
			text = "\n\n" + text
		}
		said = true
		return out.say(text)
	}
	for _, p := range t.parts {
		text, err := d.words(ctx, t, p, &patience)
		if err != nil {
			return err
		}
		if p.ask != nil && len(t.inputs) > 1 {
			text = "> " + clip(strings.Join(strings.Fields(p.ask.text), " "), 80) + "\n\n" + text
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

// words are what one part of a talk is answered with.
func (d *demo) words(ctx context.Context, t *talk, p *talkPart, patience *time.Duration) (string, error) {
	switch {
	case p.ask == nil:
		return p.outcome(english), nil // the words are there; a result never lacks room
	case p.wish != nil:
		return p.outcome(p.ask.lang), nil
	}
	return d.answer(ctx, p.ask, &t.demoOffer, patience)
}

// pause lets time pass, as long as the context lasts.
func (d *demo) pause(ctx context.Context, took time.Duration, doing string) error {
	if took <= 0 {
		return nil
	}
	if err := d.options.Wait(ctx, took); err != nil {
		if ctx.Err() != nil {
			err = stopped(ctx)
		}
		return &Error{Kind: Transient, Err: fmt.Errorf("demo model, %s for %v: %w", doing, took, err)}
	}
	return nil
}

// answer thinks as long as it was told to, and then answers by the rules.
func (d *demo) answer(ctx context.Context, a *ask, o *demoOffer, patience *time.Duration) (string, error) {
	asked, ok := a.thinkTime()
	if !ok {
		return a.answer(d.options.Now(), o), nil
	}
	took := min(asked, *patience)
	*patience -= took
	if err := d.pause(ctx, took, "thinking"); err != nil {
		return "", err
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
