package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/pause"
	"mimikit/core/task"
)

// A ModelHealth is how one model at one endpoint is.
type ModelHealth struct {
	Model     string    `json:"model"`
	Endpoint  string    `json:"endpoint"`
	State     string    `json:"state"`          // closed (all is well), open or half_open
	Failures  int       `json:"failures"`       // in a row
	Until     time.Time `json:"until,omitzero"` // when it is asked again, while it is open
	LastError string    `json:"lastError,omitempty"`
}

// A Status is how the bot is doing, as programs are told of it. Its JSON is
// add-only.
type Status struct {
	Nodes      []string       `json:"nodes"`
	Partitions int            `json:"partitions"`
	Owned      int            `json:"owned"`
	Waiting    int64          `json:"waiting"`     // entries in all channels
	OldestMs   int64          `json:"oldestMs"`    // age of the oldest of them
	Dead       int64          `json:"deadLetters"` // of all workspaces
	Holds      map[string]int `json:"partitionsByNode,omitempty"`
	Tasks      map[string]int `json:"tasks"`  // by status
	Facts      []Fact         `json:"facts"`  // of the process that was asked
	Models     []ModelHealth  `json:"models"` // likewise
	At         time.Time      `json:"at"`     // Redis' time
	Paused     []PauseView    `json:"paused,omitempty"`
}

// status is the command.
func (q *query) status(ctx context.Context, args []string) (Answer, error) {
	if err := q.nothing(args); err != nil {
		return Answer{}, err
	}
	st, err := q.o.Channels.Stats(ctx)
	if err != nil {
		return Answer{}, err
	}
	ts, err := q.o.Tasks.Stats(ctx)
	if err != nil {
		return Answer{}, err
	}
	d := Status{Nodes: st.Nodes, Partitions: len(st.Partitions), Dead: st.Dead, Tasks: map[string]int{}, Holds: map[string]int{}, At: st.At}
	var oldest time.Duration
	for _, c := range st.Channels {
		d.Waiting += c.Entries
		oldest = max(oldest, c.Oldest)
	}
	d.OldestMs = oldest.Milliseconds()
	for _, p := range st.Partitions {
		if p.Node != "" {
			d.Owned++
			if q.c.role() >= chat.RoleAdmin {
				d.Holds[p.Node]++
			}
		}
	}
	for s, n := range ts.ByStatus {
		d.Tasks[string(s)] = n
	}
	// Paths and addresses of the machine are for those who look after it.
	if q.o.Facts != nil && q.c.role() >= chat.RoleAdmin {
		d.Facts = q.o.Facts(ctx)
	}
	if q.o.Models != nil {
		d.Models = q.o.Models()
	}
	paused, err := q.pauses(ctx)
	if err != nil {
		return Answer{}, err
	}
	facts := slices.Clone(d.Facts)
	nodes := fmt.Sprintf("%d live, %d of %d partitions owned", len(d.Nodes), d.Owned, d.Partitions)
	if q.c.role() >= chat.RoleAdmin && len(d.Nodes) > 0 {
		nodes += ": " + clean(strings.Join(d.Nodes, ", "))
	}
	facts = append(facts, Fact{"nodes", nodes})
	waiting := "nothing"
	if d.Waiting > 0 {
		waiting = fmt.Sprintf("%s, the oldest for %s", count(int(d.Waiting), "entry"), lasting(oldest))
	}
	facts = append(facts, Fact{"waiting", waiting}, Fact{"tasks", taskCounts(ts)})
	for _, m := range d.Models {
		facts = append(facts, Fact{"model " + m.Model, q.healthOf(m)})
	}
	if d.Dead > 0 && q.c.role() >= chat.RoleOperator {
		facts = append(facts, Fact{"dead letters", strconv.FormatInt(d.Dead, 10)})
	}
	var a Answer
	for _, p := range paused {
		d.Paused = append(d.Paused, pauseView(p))
		words := q.pausedWords(p)
		if q.c.Owner || p.Scope != pause.Everywhere && q.c.role() >= chat.RoleAdmin {
			words += " " + q.c.name(q.resumeWords(p.Scope)) + " has it go on."
			a.press("Resume", "", q.resumeWords(p.Scope))
		}
		a.say(words)
	}
	a.facts(facts)
	for _, w := range q.worries(d) {
		a.say(w)
	}
	a.Data = d
	return a, nil
}

// worries are what somebody should look after.
func (q *query) worries(d Status) []string {
	var out []string
	switch {
	case len(d.Nodes) == 0:
		out = append(out, "No node is live at the moment: nothing is answered until one is.")
	case d.Owned < d.Partitions:
		out = append(out, "Some partitions have no owner at the moment; the nodes take them within a lease.")
	}
	if d.Dead > 0 && q.c.role() >= chat.RoleOperator {
		out = append(out, q.c.name("dead")+" lists what was given up.")
	}
	return out
}

func taskCounts(s task.Stats) string {
	var words []string
	for _, status := range task.Statuses {
		if n := s.ByStatus[status]; n > 0 {
			words = append(words, fmt.Sprintf("%s %s", grouped(int64(n)), status))
		}
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

func (q *query) healthOf(m ModelHealth) string {
	switch m.State {
	case "closed":
		if m.Failures > 0 {
			return fmt.Sprintf("answers; the last %s failed", count(m.Failures, "call"))
		}
		return "answers"
	case "half_open":
		return "being tried again"
	}
	words := fmt.Sprintf("not asked, since %s failed in a row; asked again %s", count(m.Failures, "call"), q.ago(m.Until))
	if m.LastError != "" && q.c.role() >= chat.RoleAdmin {
		words += ": " + cut(clean(m.LastError), 200)
	}
	return words
}

// streams is the command.
func (q *query) streams(ctx context.Context, args []string) (Answer, error) {
	if err := q.nothing(args); err != nil {
		return Answer{}, err
	}
	st, err := q.o.Channels.Stats(ctx)
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	t := a.table("Channel", "Read by", "Entries", "Lag", "Pending", "Oldest")
	views := make([]Stream, 0, len(st.Channels))
	for _, c := range st.Channels {
		lag := max(c.Entries-c.Pending, 0)
		views = append(views, Stream{string(c.Channel), c.Group, c.Entries, lag, c.Pending, c.Oldest.Milliseconds()})
		t.row(string(c.Channel), c.Group, grouped(c.Entries), grouped(lag), grouped(c.Pending), age(c.Oldest))
	}
	owned := 0
	for _, p := range st.Partitions {
		if p.Node != "" {
			owned++
		}
	}
	a.say(fmt.Sprintf("%s live, %d of %d partitions owned, %s.", count(len(st.Nodes), "node"), owned, len(st.Partitions), count(int(st.Dead), "dead letter")))
	a.Data = views
	return a, nil
}

// A Stream is a channel as programs are told of it. Its JSON is add-only.
type Stream struct {
	Channel  string `json:"channel"`
	Group    string `json:"group"`
	Entries  int64  `json:"entries"`
	Lag      int64  `json:"lag"`     // of them, those that no node has taken
	Pending  int64  `json:"pending"` // and those that one has, and has not settled
	OldestMs int64  `json:"oldestMs"`
}

func age(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return lasting(d)
}

// number reads the one number that may follow a command.
func number(args []string, usual, most int) (int, error) {
	if len(args) == 0 {
		return usual, nil
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > most || len(args) > 1 {
		return 0, refuse("%s: one number from 1 to %d is allowed.", code(cut(strings.Join(args, " "), 40)), most)
	}
	return n, nil
}

func plainNumber(args []string) bool {
	_, err := number(args, 1, 1000)
	return err == nil
}

var _ Channels = (*channel.Node)(nil)
