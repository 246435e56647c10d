package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// A stage is a platform without a wire, which does everything right but for one
// bug. Its time stands still unless it is told to pass.
type stage struct {
	bug   string
	now   time.Time
	last  int
	said  map[string]*utterance
	joins map[string]bool // threads with the bot in them
	queue []adapters.Message
	inbox adapters.Inbox
	shown map[chat.Conversation][]Shown
	keys  map[string]string // :: reply and part → message
	fail  Failure
	parts int
	work  map[chat.Conversation]time.Time // when it was shown last
}

type utterance struct {
	Said
	id   string
	at   time.Time
	edit int
}

func newStage(bug string) *stage {
	return &stage{
		bug: bug, now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), said: map[string]*utterance{}, joins: map[string]bool{},
		shown: map[chat.Conversation][]Shown{}, keys: map[string]string{}, work: map[chat.Conversation]time.Time{},
	}
}

func (s *stage) Lacks(Ability) string { return "" }

func (s *stage) id() string { s.last++; return strconv.Itoa(s.last) }

func (s *stage) Listen(inbox adapters.Inbox) func() {
	s.inbox = inbox
	if s.bug == "forgets threads" {
		clear(s.joins)
	}
	return func() {
		if s.bug != "hears after its stop" {
			s.inbox = nil
		}
		if s.bug == "loses what it held" {
			s.queue = nil
		}
	}
}

func (s *stage) Say(x Said) string {
	u := &utterance{Said: x, id: s.id(), at: s.now}
	s.said[u.id] = u
	s.event(u, chat.KindMessage)
	return u.id
}

func (s *stage) Redeliver(id string) { s.event(s.said[id], chat.KindMessage) }

func (s *stage) Edit(id, text string) {
	u := s.said[id]
	u.edit++
	fresh, mentions := strings.CutPrefix(text, mentioning)
	newly := mentions && !u.Mention
	u.Text, u.Mention = fresh, u.Mention || mentions
	if s.bug == "is deaf to edits" || s.bug == "is deaf to added mentions" && newly {
		return
	}
	s.event(u, chat.KindEdit)
}

func (s *stage) Delete(id string) { s.event(s.said[id], chat.KindDelete) }

func (s *stage) conversation(u *utterance) chat.Conversation {
	c := chat.Conversation{Platform: "slack", Workspace: "T", Place: "D1"}
	if u.In == Place {
		c.Place, c.Thread = "C1", u.Thread
		if c.Thread == "" {
			c.Thread = u.id
		}
		if s.bug == "has one conversation for all" {
			c.Thread = "1"
		}
	}
	return c
}

func (s *stage) event(u *utterance, kind chat.InputKind) {
	c := s.conversation(u)
	ours := u.In == Direct || u.Mention || s.joins[c.Thread] || s.bug == "hears everybody"
	if !ours || u.Bot && s.bug != "hears bots" {
		return
	}
	s.joins[c.Thread] = true
	m := adapters.Message{
		Conversation: c, Kind: kind, Message: u.id, Text: u.Text, At: u.at, Addressed: true, Author: chat.Author{ID: "U1", Role: chat.RoleUser},
	}
	switch {
	case kind == chat.KindEdit:
		m.Edit = strconv.Itoa(u.edit)
	case kind == chat.KindDelete:
		m.Text = ""
	case u.Text == "stop" && s.bug != "takes stop for talk":
		m.Kind = chat.KindStop
	}
	switch s.bug {
	case "leaves the mention in":
		m.Text = mentioning + m.Text
	case "is never addressed":
		m.Addressed = false
	case "makes its own ids":
		m.Message = "x" + s.id()
	case "takes its own time":
		s.now = s.now.Add(time.Second)
		m.At = s.now
	case "knows no authors":
		m.Author = chat.Author{}
	}
	s.queue = append(s.queue, m)
}

func (s *stage) Pass(d time.Duration) {
	s.now = s.now.Add(d)
	if s.inbox == nil {
		return
	}
	var left []adapters.Message
	for _, m := range s.queue {
		submit := s.inbox.Submit
		if m.Kind == chat.KindStop {
			submit = s.inbox.Stop
		}
		_, err := submit(context.Background(), m)
		var refused Refusal
		switch {
		case err == nil:
			if s.bug != "shows nothing" {
				s.work[m.Conversation] = s.now
			}
		case errors.As(err, &refused) && s.bug != "insists", s.bug == "acknowledges first":
		default:
			left = append(left, m)
		}
	}
	s.queue = left
	if s.bug == "insists" && d > time.Minute {
		s.Pass(0)
	}
}

func (s *stage) Conversation(w Where) chat.Conversation {
	if w == Direct {
		return chat.Conversation{Platform: "slack", Workspace: "T", Place: "D1"}
	}
	return chat.Conversation{Platform: "slack", Workspace: "T", Place: "C1", Thread: "root"}
}

func (s *stage) Poster() adapters.Poster           { return s }
func (s *stage) Fail(f Failure)                    { s.fail = f }
func (s *stage) Bells() []string                   { return []string{"<@U1>"} }
func (s *stage) Shown(c chat.Conversation) []Shown { return slices.Clone(s.shown[c]) }

func (s *stage) Split(r chat.Reply) []adapters.Part {
	const most = 4000
	texts := []string{r.Text}
	for last := r.Text; len(last) > most && s.bug != "cuts off"; {
		at := strings.LastIndexByte(last[:most], '\n') + 1
		if at == 0 {
			at = most
		}
		texts = append(texts[:len(texts)-1], last[:at], last[at:])
		last = last[at:]
	}
	s.parts++
	var list []adapters.Part
	for i, t := range texts {
		if s.bug == "cuts off" {
			t = t[:min(len(t), most)]
		}
		p := adapters.Part{ReplyID: r.ID, Index: i, Count: len(texts), Text: t, Kind: r.Kind, ReplyTo: r.ReplyTo, At: r.CreatedAt}
		if i == len(texts)-1 || s.bug == "repeats its buttons" {
			p.Buttons = r.Buttons
		}
		if s.bug == "splits as it likes" {
			p.Text += strings.Repeat(" ", s.parts%2)
		}
		list = append(list, p)
	}
	return list
}

func key(c chat.Conversation, p adapters.Part) string {
	return fmt.Sprint(c.Key(), p.ReplyID, "/", p.Index)
}

func (s *stage) Post(_ context.Context, c chat.Conversation, p adapters.Part) (string, error) {
	fail := s.fail
	s.fail = 0
	switch {
	case s.bug == "does not sort its errors" && fail != 0 && fail != LoseAnswer:
		return "", errors.New("it failed")
	case fail == LosePost:
		return "", &adapters.PostError{Kind: adapters.UnknownPost, Err: errors.New("the connection broke")}
	case fail == RateLimit:
		return "", &adapters.PostError{Kind: adapters.RetryPost, RetryAfter: RetryIn, Err: errors.New("too fast")}
	case fail == Refuse:
		return "", &adapters.PostError{Kind: adapters.PlaceGone, Err: errors.New("archived")}
	}
	m := Shown{ID: s.id(), Text: p.Text, Rang: s.bug == "rings" && strings.Contains(p.Text, "<@U1>")}
	for _, b := range p.Buttons {
		if m.Buttons = append(m.Buttons, b.Value); s.bug == "forgets values" {
			m.Buttons[len(m.Buttons)-1] = b.Label
		}
	}
	if s.bug == "says nothing" && strings.TrimSpace(p.Text) == "" {
		return m.ID, nil
	}
	if s.bug == "shows the newest first" {
		s.shown[c] = append([]Shown{m}, s.shown[c]...)
	} else {
		s.shown[c] = append(s.shown[c], m)
	}
	s.keys[key(c, p)] = m.ID
	if s.bug == "posts twice" || s.bug == "tries again" && fail == LoseAnswer {
		s.shown[c] = append(s.shown[c], Shown{ID: s.id(), Text: p.Text})
	}
	if s.bug == "hears itself" {
		s.queue = append(s.queue, adapters.Message{Conversation: c, Message: m.ID, Text: p.Text, At: s.now, Author: chat.Author{ID: "B", Role: chat.RoleUser}})
	}
	if s.bug != "never ends a sign" {
		delete(s.work, c)
	}
	if fail == LoseAnswer {
		return "", &adapters.PostError{Kind: adapters.UnknownPost, Err: errors.New("the connection broke")}
	}
	return m.ID, nil
}

func (s *stage) Lookup(_ context.Context, c chat.Conversation, p adapters.Part) (string, error) {
	switch {
	case s.bug == "finds nothing":
		return "", nil
	case s.bug == "finds any" && len(s.shown[c]) > 0:
		return s.shown[c][len(s.shown[c])-1].ID, nil
	case s.bug == "finds what is not there" && s.keys[key(c, p)] == "":
		return "ghost", nil
	}
	return s.keys[key(c, p)], nil
}

// workingOn is Working of the adapter; that of the rig has the same name.
func (s *stage) workingOn(c chat.Conversation, what string) {
	if what == "" && s.bug != "never ends a sign" {
		delete(s.work, c)
	} else if s.bug != "shows no work" {
		s.work[c] = s.now
	}
}
