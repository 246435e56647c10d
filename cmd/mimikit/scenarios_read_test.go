package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"mimikit/core/chat"
)

// scenarioDir holds one conversation a file; its README says how they read.
const scenarioDir = "../../testdata/scenarios"

// A scenario is one conversation and what a right outcome of it is.
type scenario struct {
	name string // of the file

	Kind  string `yaml:"kind"`
	About string `yaml:"about"` // what it is about, in a sentence

	Where   string        `yaml:"where"` // thread (the default), place or dm
	Pace    string        `yaml:"pace"`  // chat (the default) or relaxed
	Now     time.Time     `yaml:"now"`   // when the last thing is said; a Monday morning in UTC where nothing is set
	Summary string        `yaml:"summary"`
	History []saying      `yaml:"history"`
	Tasks   string        `yaml:"tasks"`
	Said    []saying      `yaml:"said"`
	Results []taskEnd     `yaml:"results"`
	Finds   finds         `yaml:"finds"` // what look-ups answer
	With    []string      `yaml:"with"`  // actions beside the usual ones, see further
	Right   right         `yaml:"right"`
	Good    script        `yaml:"good"`
	Bad     []badScript   `yaml:"bad"`
	authors []chat.Author // of Said
}

type finds map[string]string

// A saying is something that somebody said, or a line of the history.
type saying struct {
	Who     string    `yaml:"who"`  // Ann; Olga (operator); Root (admin); Deploys (bot). In the history also Mimikit, and task
	Name    string    `yaml:"name"` // what they call themselves, where that is another
	Text    string    `yaml:"text"`
	Log     int       `yaml:"log"`     // lines of a log that stand before the text
	Size    int       `yaml:"size"`    // bytes of the whole, where only this much of it could be kept
	Kind    string    `yaml:"kind"`    // message (the default), edit, delete, stop or answer
	Message string    `yaml:"message"` // names a message, for edits of it
	Answers string    `yaml:"answers"` // the question that this answers
	Option  string    `yaml:"option"`  // the button that was pressed
	Aside   bool      `yaml:"aside"`   // the bot only overhears it
	Note    string    `yaml:"note"`    // of a line of the history
	At      time.Time `yaml:"at"`
	Files   []struct {
		Name string `yaml:"name"`
		Type string `yaml:"type"`
		Size int64  `yaml:"size"`
		Text string `yaml:"text"`
	} `yaml:"files"`
}

// A taskEnd is the result of a task.
type taskEnd struct {
	Task   string `yaml:"task"`
	Title  string `yaml:"title"`
	For    string `yaml:"for"`
	Status string `yaml:"status"` // succeeded, failed or canceled
	Output string `yaml:"output"`
	Error  string `yaml:"error"`
	Reason string `yaml:"reason"` // timeout, error or killed
}

// Calls are actions by name, each with its arguments.
type calls []map[string]map[string]any

// A right is what an outcome is judged by. What is not set is not judged, but
// for effects: those that are not wanted here are wrong.
type right struct {
	Actions  calls    `yaml:"actions"`  // each is asked for once, with at least these arguments; /…/ is a regexp
	May      []string `yaml:"may"`      // effects that are as good with as without
	Never    []string `yaml:"never"`    // actions that are not even asked for
	For      string   `yaml:"for"`      // on whose behalf it was done
	Language string   `yaml:"language"` // of the reply: en, de, …
	Each     []string `yaml:"each"`     // languages, each of which a part of the reply is in
	Says     []string `yaml:"says"`     // regexps, case ignored
	Unsaid   []string `yaml:"unsaid"`   // likewise, what must not be said
	Links    string   `yaml:"links"`    // given: only those that stand in the conversation
	Longest  int      `yaml:"longest"`  // characters of the reply
	Asks     bool     `yaml:"asks"`     // the reply asks something back
	Silent   bool     `yaml:"silent"`   // there is no reply at all
	Replies  int      `yaml:"replies"`  // where that is not one
	Shows    []string `yaml:"shows"`    // texts that stand in the last prompt of the thinker
	Hides    []string `yaml:"hides"`    // texts that stand in no prompt
	Offered  []string `yaml:"offered"`  // actions that the thinker is given
	Withheld []string `yaml:"withheld"` // actions that it is not
	Digest   []string `yaml:"digest"`   // regexps of the digest's summary
	NoCall   bool     `yaml:"no_call"`  // no model is asked
	ReplyTo  string   `yaml:"reply_to"` // the message that is answered
	Mistakes int      `yaml:"mistakes"` // wrong calls that go back to the model in the good script
}

// A script is what a model answers, call by call.
type script struct {
	Digest string    `yaml:"digest"` // of the teller, where it is asked for one
	Thinks []thought `yaml:"thinks"` // of the thinker
	Words  string    `yaml:"words"`  // of the teller, where it words the decision
}

// A thought is one answer of the thinker.
type thought struct {
	Says  string `yaml:"says"`
	Calls calls  `yaml:"calls"`
}

// A badScript is what a poor model might answer.
type badScript struct {
	script   `yaml:",inline"`
	Why      string `yaml:"why"`
	Rejected string `yaml:"rejected"` // a regexp of what the judge says
	Refused  string `yaml:"refused"`  // an action that the program itself does not do
	Style    string `yaml:"style"`    // block, for a model that writes blocks
}

// scenarioKinds are what there must be scenarios of.
var scenarioKinds = []string{
	"answer", "act-or-answer", "task", "delegate", "schedule", "question", "remember", "cancel", "result", "failure",
	"several", "edit", "injection", "rights", "bot", "small-talk", "help", "long", "file", "language", "not-offered",
	"hallucination", "stop", "feedback", "look-up",
}

// readScenarios reads all files, sorted by name.
func readScenarios(t testing.TB) []*scenario {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(scenarioDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("scenarios in %s: %d, %v", scenarioDir, len(files), err)
	}
	var all []*scenario
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := readScenario(strings.TrimSuffix(filepath.Base(file), ".yaml"), data)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, s)
	}
	return all
}

func readScenario(name string, data []byte) (*scenario, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	s := &scenario{name: name}
	if err := d.Decode(s); err != nil {
		return nil, err
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document")
	}
	if err := s.complete(); err != nil {
		return nil, err
	}
	return s, s.check()
}

// complete fills in what a file may leave out.
func (s *scenario) complete() error {
	s.Where, s.Pace = cmp.Or(s.Where, "thread"), cmp.Or(s.Pace, "chat")
	if s.Now.IsZero() {
		s.Now = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	}
	for _, said := range s.Said {
		a, err := person(said.Who, said.Name)
		if err != nil {
			return err
		}
		s.authors = append(s.authors, a)
	}
	return nil
}

// check says what is wrong with a scenario as such.
func (s *scenario) check() error {
	switch {
	case !slices.Contains(scenarioKinds, s.Kind):
		return fmt.Errorf("kind: %q; allowed are %s", s.Kind, strings.Join(scenarioKinds, ", "))
	case s.About == "":
		return errors.New("about: it is missing")
	case s.Where != "thread" && s.Where != "place" && s.Where != "dm":
		return fmt.Errorf("where: %q; allowed are thread, place and dm", s.Where)
	case s.Pace != "chat" && s.Pace != "relaxed":
		return fmt.Errorf("pace: %q; allowed are chat and relaxed", s.Pace)
	case len(s.Said)+len(s.Results) == 0:
		return errors.New("said, results: there is neither")
	case len(s.Right.Actions)+len(s.Right.Says)+len(s.Right.Unsaid) == 0 && !s.Right.Silent:
		return errors.New("right: nothing could be wrong")
	}
	for _, list := range [][]string{s.Right.Says, s.Right.Unsaid, s.Right.Digest} {
		for _, expr := range list {
			if _, err := regexp.Compile(expr); err != nil {
				return fmt.Errorf("right: %w", err)
			}
		}
	}
	for i, b := range s.Bad {
		if b.Rejected == "" || b.Why == "" {
			return fmt.Errorf("bad[%d]: it needs why and rejected", i)
		}
		if _, err := regexp.Compile(b.Rejected); err != nil {
			return fmt.Errorf("bad[%d]: rejected: %w", i, err)
		}
	}
	return nil
}

var spelled = regexp.MustCompile(`^(\S[^()]*?)(?: \((operator|admin|bot)\))?$`)

// person reads how a scenario names somebody.
func person(who, name string) (chat.Author, error) {
	m := spelled.FindStringSubmatch(who)
	if m == nil {
		return chat.Author{}, fmt.Errorf("who: %q; want a name, and (operator), (admin) or (bot) after it where it is one", who)
	}
	a := chat.Author{ID: "U" + strings.ToUpper(m[1]), Name: cmp.Or(name, m[1]), Role: chat.RoleUser, Bot: m[2] == "bot"}
	switch m[2] {
	case "operator":
		a.Role = chat.RoleOperator
	case "admin":
		a.Role = chat.RoleAdmin
	}
	return a, nil
}

// conversation is where the scenario takes place. No prompt shows it.
func (s *scenario) conversation() chat.Conversation {
	c := chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C-" + s.name, Thread: "1.1"}
	switch s.Where {
	case "place":
		c.Thread = ""
	case "dm":
		c.Place, c.Thread = "D-"+s.name, ""
	}
	return c
}

// pause is the time between two lines of the history.
const pause = 20 * time.Second

// inputs are what is said, as the inbox makes it.
func (s *scenario) inputs() []chat.UserInput {
	var out []chat.UserInput
	for i, said := range s.Said {
		in := chat.UserInput{
			ID: fmt.Sprintf("i%d", i+1), Conversation: s.conversation(), Kind: chat.InputKind(cmp.Or(said.Kind, "message")),
			Message: cmp.Or(said.Message, fmt.Sprintf("m%d", i+1)), Author: s.authors[i], Text: logged(said.Log) + said.Text,
			TextSize: said.Size, Addressed: !said.Aside, Question: said.Answers, Option: said.Option, At: said.At,
		}
		if in.At.IsZero() {
			// Close enough together for one turn at any pace.
			in.At = s.Now.Add(-time.Duration(len(s.Said)-1-i) * 300 * time.Millisecond)
		}
		switch in.Kind {
		case chat.KindEdit:
			in.Edit = fmt.Sprintf("e%d", i+1)
		case chat.KindDelete:
			in.Edit = "deleted"
		}
		for j, f := range said.Files {
			in.Attachments = append(in.Attachments, chat.Attachment{
				ID: fmt.Sprintf("F%d", j+1), Name: f.Name, MediaType: f.Type, Size: cmp.Or(f.Size, int64(len(f.Text))), Text: f.Text,
			})
		}
		out = append(out, in)
	}
	return out
}

// logged is a log in which nothing happens.
func logged(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "09:%02d:%02d worker-%d: job %d done in %d ms\n", i/60%60, i%60, i%4, 4100+i, 80+i*37%400)
	}
	return b.String()
}

// ends are the results that come.
func (s *scenario) ends() ([]chat.TaskResult, error) {
	var out []chat.TaskResult
	for _, r := range s.Results {
		who, err := person(cmp.Or(r.For, "Ann"), "")
		if err != nil {
			return nil, err
		}
		out = append(out, chat.TaskResult{
			ID: r.Task, Conversation: s.conversation(), Title: r.Title, Profile: "standard", Status: chat.TaskStatus(cmp.Or(r.Status, "succeeded")),
			Output: r.Output, Error: r.Error, FailureReason: r.Reason, Requester: who, CompletedAt: s.Now, DurationMs: 41_000,
		})
	}
	return out, nil
}

// past are the lines of the history, the last of them ten minutes ago.
func (s *scenario) past() ([]chat.Line, error) {
	var out []chat.Line
	for i, h := range s.History {
		l := chat.Line{ID: fmt.Sprintf("h%d", i+1), Role: chat.LineUser, Text: logged(h.Log) + h.Text, Note: h.Note, At: h.At}
		if l.At.IsZero() {
			l.At = s.Now.Add(-10*time.Minute - time.Duration(len(s.History)-1-i)*pause)
		}
		switch h.Who {
		case "Mimikit":
			l.Role, l.Author = chat.LineAssistant, chat.Author{Name: "Mimikit", Bot: true}
		case "task":
			l.Role = chat.LineSystem
		default:
			var err error
			if l.Author, err = person(h.Who, h.Name); err != nil {
				return nil, err
			}
		}
		out = append(out, l)
	}
	return out, nil
}
