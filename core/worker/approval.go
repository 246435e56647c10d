package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mimikit/core/action"
	"mimikit/core/chat"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/core/task"
)

// What people can answer when a task asks whether it may do something. Anything else
// is a refusal.
const (
	AllowOnce  = "Allow once"
	AllowAgain = "Allow for this task" // the same call, however often
	Refuse     = "Refuse"
)

// The kinds of progress of a task that asks.
const (
	EventApprovalAsk     = "approval_ask"
	EventApprovalAllowed = "approval_allowed"
	EventApprovalRefused = "approval_refused"
)

// ExpertTool is what Approvals.Tools calls the start of an expert's agent.
const ExpertTool = "expert"

// Approvals say which calls of a task are carried out only when somebody has allowed
// them. They are told apart before anything is done: the run ends, the call lies in
// the checkpoint, and a later run does exactly that call or tells the model that it
// was refused.
type Approvals struct {
	Tools    []string         // names or globs of actions; ExpertTool is the start of an expert
	Commands []*regexp.Regexp // looked for in shell commands
	// Record keeps a decision in the audit trail, before anything comes of it; it may
	// be called twice for one. Its error ends the run, to be tried again. nil keeps none.
	Record func(ctx context.Context, d Decision) error
}

// A Decision is an answer to what a task asked.
type Decision struct {
	Task    task.Task
	What    string // the call in short
	Digest  string // of the whole call
	Answer  string
	Allowed bool
	By      chat.Author // a bot where nobody answered in time
}

// asks reports whether a call needs somebody's word. The end of a task is never asked
// for: nothing but its result comes of it.
func (a *Approvals) asks(c action.Call) bool {
	if a == nil || c.Name == action.Respond.Name {
		return false
	}
	if a.names(c.Name) {
		return true
	}
	if c.Name != action.ExecShell.Name || len(a.Commands) == 0 {
		return false
	}
	var command action.Command
	if err := json.Unmarshal(c.Arguments, &command); err != nil {
		return true // unreachable: it fits the schema
	}
	return slices.ContainsFunc(a.Commands, func(re *regexp.Regexp) bool { return re.MatchString(command.Command) })
}

func (a *Approvals) names(tool string) bool {
	return a != nil && slices.ContainsFunc(a.Tools, func(glob string) bool {
		ok, err := path.Match(glob, tool)
		return ok || err != nil // what cannot be read lets nothing through
	})
}

// digest is what one call has and no other: its name and its arguments, byte for byte.
func digest(name string, arguments []byte) string {
	sum := sha256.Sum256(append([]byte(name+"\x00"), arguments...))
	return hex.EncodeToString(sum[:])
}

// A pending call waits for somebody's word. It is stored; fields are only ever added.
type pending struct {
	Ask     chat.TaskQuestion `json:"ask"`
	Digest  string            `json:"digest"` // of the call that was shown
	What    string            `json:"what"`
	Name    string            `json:"name"`
	Text    string            `json:"text,omitempty"`    // the model's answer with the call in it,
	Calls   []toolCall        `json:"calls,omitempty"`   // and the call where it stands beside
	Decided string            `json:"decided,omitempty"` // the answer, once it is in the audit trail
}

// allowed reports whether the call may be done now.
func (p *pending) allowed() bool { return p.Decided == AllowOnce || p.Decided == AllowAgain }

// held is a call that is not carried out yet.
type held struct {
	call action.Call
	resp llm.Response
}

func (h *held) Error() string { return h.call.Name + " waits for approval" }

// callsAtOnce is how many calls of one answer are done: where that is one, the call
// that was shown is all that an approval can let through.
const callsAtOnce = 1

// A gate stands between a run and its model. A call that needs somebody's word never
// gets past it to be carried out: the model's answer becomes the error *held.
type gate struct {
	*job
	offer *action.Offer
	left  int    // model calls of the run; in the last nothing but the end is done
	again bool   // the first answer is the one that was held and is allowed now
	once  string // digest of the call that is allowed in it
}

// Complete asks the model, or gives the answer again that was held.
func (g *gate) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	var resp llm.Response
	once := ""
	if g.again {
		g.again = false
		resp, once = g.at.Pending.response(), g.once
	} else {
		var err error
		if resp, err = g.o.Model.Complete(ctx, req); err != nil {
			return resp, err
		}
	}
	g.left--
	var calls []action.Decoded
	if g.o.Style == action.Block {
		_, calls = g.offer.DecodeBlock(resp.Text)
	} else {
		calls = g.offer.DecodeTools(resp.ToolCalls)
	}
	if g.left <= 0 || len(calls) == 0 {
		return resp, nil
	}
	for _, c := range calls[:min(len(calls), callsAtOnce)] {
		if c.Err != nil || !g.o.Approvals.asks(c.Call) {
			continue
		}
		if d := digest(c.Call.Name, c.Call.Arguments); d == once || slices.Contains(g.at.Allowed, d) {
			continue
		}
		if resp.ToolCalls = resp.ToolCalls[:min(len(resp.ToolCalls), 1)]; len(resp.ToolCalls) > 0 && resp.ToolCalls[0].ID == "" {
			resp.ToolCalls[0].ID = fmt.Sprintf("held_%d", g.at.Rounds+1)
		}
		return resp, &held{c.Call, resp}
	}
	return resp, nil
}

// response is the model's answer once more. It costs nothing now.
func (p *pending) response() llm.Response {
	r := llm.Response{Text: p.Text}
	for _, c := range p.Calls {
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall(c))
	}
	return r
}

// hold keeps a call until somebody has decided about it, and gives the question. What
// nobody can look at whole is not asked for: the model is told so, and ask is nil.
func (j *job) hold(ctx context.Context, h *held) (ask *chat.TaskQuestion, err error) {
	p := &pending{Digest: digest(h.call.Name, h.call.Arguments), What: history.Cut(h.call.Name+": "+bare(h.call), maxWhat), Name: h.call.Name, Text: h.resp.Text}
	if j.o.Style != action.Block {
		for _, c := range h.resp.ToolCalls {
			p.Calls = append(p.Calls, toolCall(c))
		}
	}
	j.at.Pending = p
	all, over := whole(h.call, maxWhole)
	text, left := whole(h.call, maxShown)
	detail := ""
	if left > 0 {
		detail = all
		text += "\n\n" + j.seenWhole(fmt.Sprintf("This is the beginning and the end of it: %d bytes are left out.", left))
	}
	q := j.question(fmt.Sprintf("The task `%s` wants to use `%s`:\n\n%s\n\nIt waits for your word.", inline(j.task.Title), h.call.Name, text), detail, AllowOnce, AllowAgain, Refuse)
	if over > 0 || !storable(q) {
		j.decline(fmt.Sprintf("not done: somebody would have to allow it, and would have to see it whole; it has %d bytes of arguments, and about %d can be shown; make it shorter, or go on without it", len(h.call.Arguments), maxWhole))
		return nil, j.save(ctx)
	}
	return j.ask(ctx, q)
}

// seenWhole says how to see what a question does not show.
func (j *job) seenWhole(why string) string {
	return fmt.Sprintf("%s The command `task %s` shows all of it.", why, j.task.ID)
}

// question is the one about the pending call. detail is all that it does not show.
func (j *job) question(text, detail string, options ...string) chat.TaskQuestion {
	return chat.TaskQuestion{
		// No other question of the task has this id, also where its checkpoint was lost.
		ID:       fmt.Sprintf("approve-%d-%s-%s", j.at.Rounds, strconv.FormatInt(j.o.Now().UnixNano(), 36), j.at.Pending.Digest[:8]),
		Question: text, Detail: detail, Options: options, Default: Refuse,
	}
}

// storable reports whether a question is short enough to be kept, as it is encoded.
func storable(q chat.TaskQuestion) bool {
	data, err := json.Marshal(q)
	return err == nil && len(data) <= chat.MaxText
}

// ask ends a run with the question about its pending call.
func (j *job) ask(ctx context.Context, q chat.TaskQuestion) (*chat.TaskQuestion, error) {
	p := j.at.Pending
	p.Ask = q
	if err := j.save(ctx); err != nil {
		return nil, err
	}
	if err := j.report(ctx, task.Event{Kind: EventApprovalAsk, Message: p.Name, Data: j.about(p)}); err != nil {
		return nil, err
	}
	j.log.InfoContext(ctx, "approval_asked", "action", p.Name, "digest", p.Digest)
	return &p.Ask, nil
}

// decide takes the answer about the pending call in. ask is the question where there
// is no answer yet: the run before this one ended before it could put it.
func (j *job) decide(ctx context.Context) (ask *chat.TaskQuestion, err error) {
	p, t := j.at.Pending, j.task
	switch {
	case p == nil:
		return nil, nil
	case p.Decided != "":
		return nil, nil
	case t.Question == nil || t.Question.ID != p.Ask.ID || t.Answer == "":
		return &p.Ask, nil
	}
	d := Decision{Task: t, What: p.What, Digest: p.Digest, Answer: t.Answer, Allowed: t.Answer == AllowOnce || t.Answer == AllowAgain, By: t.AnsweredBy}
	if a := j.o.Approvals; a != nil && a.Record != nil {
		if err := a.Record(ctx, d); err != nil {
			return nil, fmt.Errorf("keep who decided about %s: %w", p.Name, err)
		}
	}
	p.Decided = t.Answer
	if t.Answer == AllowAgain {
		j.at.Allowed = append(j.at.Allowed, p.Digest)
	}
	event := task.Event{Kind: EventApprovalRefused, Message: p.Name, Data: j.about(p)}
	if d.Allowed {
		event.Kind = EventApprovalAllowed
	}
	j.log.InfoContext(ctx, event.Kind, "action", p.Name, "digest", p.Digest, "by", t.AnsweredBy.ID)
	if err := j.save(ctx); err != nil {
		return nil, err
	}
	return nil, j.report(ctx, event)
}

// refusal says who refused, for the model.
func (j *job) refusal() string {
	by := j.task.AnsweredBy
	switch {
	case by.Bot:
		return "not done: nobody allowed it in time"
	case by.Name == "":
		return "not done: " + by.ID + " refused it"
	}
	return "not done: " + inline(by.Name) + " refused it"
}

// decline gives the model an answer in place of the pending call's.
func (j *job) decline(why string) {
	p := j.at.Pending
	said := llm.Message{Role: llm.Assistant, Content: p.Text}
	answer := llm.Message{Role: llm.ToolRole, Content: why}
	if len(p.Calls) > 0 {
		call := llm.ToolCall(p.Calls[0])
		call.Name = p.Name
		if strings.TrimSpace(call.Arguments) == "" {
			call.Arguments = "{}"
		}
		said.ToolCalls, answer.ToolCallID = []llm.ToolCall{call}, call.ID
	} else {
		answer = llm.Message{Role: llm.User, Content: fmt.Sprintf("<action_result name=%q trust=\"data\">\n%s\n</action_result>", p.Name, html.EscapeString(why))}
	}
	j.at.Pending = nil
	j.at.add([]llm.Message{said, answer})
}

func (j *job) save(ctx context.Context) error {
	data, err := j.at.encode()
	if err != nil {
		return err
	}
	return j.keep.SaveCheckpoint(ctx, data)
}

// about is what progress tells of a pending call.
func (j *job) about(p *pending) json.RawMessage {
	data := map[string]any{"what": short(p.What), "digest": p.Digest, "step": j.at.Rounds + 1}
	if p.Decided != "" {
		data["answer"], data["by"] = p.Decided, j.task.AnsweredBy.ID
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return nil // unreachable: it holds texts and a number
	}
	return raw
}

// begin asks whether an expert may begin, where that is set. A plan of work is words,
// so a long one is shown by its beginning.
func (j *job) begin(ctx context.Context, a *Approvals, prompt string) (ask *chat.TaskQuestion, err error) {
	d := digest(ExpertTool, []byte(prompt))
	if ask, err := j.decide(ctx); ask != nil || err != nil {
		return ask, err
	}
	if j.at.Agent == nil { // an earlier run has asked, and worked at nothing
		j.resumed, j.emptied = false, false
	}
	if p := j.at.Pending; p != nil {
		if !p.allowed() {
			return nil, task.Final(errors.New("the expert may not begin: " + j.refusal()))
		}
		// What is allowed is this work; it goes on after every crash.
		j.at.Allowed, j.at.Pending = append(j.at.Allowed, p.Digest), nil
		return nil, j.save(ctx)
	}
	if !a.names(ExpertTool) || slices.Contains(j.at.Allowed, d) {
		return nil, nil
	}
	text, detail := fenced(prompt), ""
	if len(text) > maxShown {
		for most := maxShown; len(text) > maxShown; most /= 2 {
			text = fenced(strings.TrimSpace(history.Cut(prompt, most)))
		}
		text += "\n\n" + j.seenWhole(fmt.Sprintf("This is the beginning of %d bytes.", len(prompt)))
		detail, _ = excerpt(prompt, maxWhole)
	}
	j.at.Pending = &pending{Digest: d, What: history.Cut(ExpertTool+": "+prompt, maxWhat), Name: ExpertTool}
	q := j.question(fmt.Sprintf("The task `%s` wants to hand this to the expert, which then runs commands by itself:\n\n%s\n\nIt waits for your word.", inline(j.task.Title), text), detail, AllowOnce, Refuse)
	if !storable(q) { // its prompt can be looked up, too
		q.Detail, _ = excerpt(prompt, maxWhole/6)
	}
	return j.ask(ctx, q)
}
