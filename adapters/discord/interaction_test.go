package discord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/core/chat"
)

// A clerk carries out commands, and notes what it was asked.
type clerk struct {
	mu    sync.Mutex
	asked []string
	calls []Caller
	slow  time.Duration
	fails error
	say   Answer
}

func (c *clerk) List() []Command {
	return []Command{
		{Name: "tasks", Short: "lists tasks", Args: []Arg{{Name: "whose", Words: []string{"mine", "all"}, Optional: true}, {Name: "page", Optional: true}}},
		{Name: "cancel", Short: "cancels a task", Args: []Arg{{Name: "id", Short: "which", Complete: true}}},
		{Name: "dead", Short: strings.Repeat("what was given up ", 20), Operator: true},
	}
}

func (c *clerk) note(call Caller, what string) (Answer, error) {
	time.Sleep(c.slow)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.calls = append(c.asked, what), append(c.calls, call)
	return c.say, c.fails
}

func (c *clerk) Run(_ context.Context, call Caller, words []string) (Answer, error) {
	return c.note(call, strings.Join(words, " "))
}

func (c *clerk) Press(_ context.Context, call Caller, value string) (Answer, error) {
	return c.note(call, "pressed "+value)
}

func (c *clerk) Complete(_ context.Context, call Caller, command, arg, typed string) ([]Choice, error) {
	_, err := c.note(call, fmt.Sprintf("complete %s %s %q", command, arg, typed))
	var out []Choice
	for i := range 40 {
		out = append(out, Choice{Label: fmt.Sprint("task ", i), Value: fmt.Sprint("t", i)})
	}
	return append([]Choice{{Label: "too long", Value: strings.Repeat("x", 101)}, {Value: "t99"}}, out...), err
}

func (c *clerk) Parse(text string, direct bool) ([]string, bool) {
	if rest, ok := strings.CutPrefix(text, "!"); ok {
		return strings.Fields(rest), true
	}
	return strings.Fields(text), direct && text == "tasks"
}

func (c *clerk) was() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

func with(c *clerk) func(*Options) { return func(o *Options) { o.Commands = c } }

func (r *rig) done(token string) discordfake.Interaction {
	r.t.Helper()
	r.await("an answer", func() bool { return r.fake.Interaction(token).Done() })
	time.Sleep(time.Second)
	synctest.Wait()
	return r.fake.Interaction(token)
}

func TestSlashCommands(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.fake.Permit(r.guild, r.ann, 1<<5)
		c := &clerk{slow: 10 * time.Second, say: Answer{Text: "| id | state |\n|---|---|\n| t1 | running |", Buttons: []chat.Button{{Label: "Cancel", Value: "cancel t1"}}}}
		_, stop := r.start(with(c), func(o *Options) {
			o.Role = func(p Person) chat.Role {
				if p.Admin {
					return chat.RoleAdmin
				}
				return chat.RoleUser
			}
		})
		defer stop()
		token := r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("tasks", discordfake.Opt("whose", "mine"), discordfake.Opt("page", "2")))
		got := r.done(token)
		if took := got.Answered.Sub(got.At); got.Type != 5 || !got.Ephemeral || took > time.Second {
			t.Errorf("answered %+v after %v, want it deferred at once and for one person", got, took)
		}
		if !strings.Contains(got.Content, "```\nid  state") || !strings.Contains(string(got.Rows), "mk:cancel t1") {
			t.Errorf("content %q, rows %s", got.Content, got.Rows)
		}
		if asked := c.was(); !slices.Equal(asked, []string{"tasks mine 2"}) {
			t.Errorf("asked %q", asked)
		}
		call := c.calls[0]
		if call.Author.ID != r.ann.ID || call.Author.Role != chat.RoleAdmin || call.Conversation.Place != r.place || call.Conversation.Workspace != r.guild {
			t.Errorf("call %+v", call)
		}
		// Told twice, done once.
		r.fake.Repeat(token)
		time.Sleep(time.Minute)
		if n := len(c.was()); n != 1 {
			t.Errorf("done %d times", n)
		}
	})
}

func TestCommandsInThreadsAndDirectMessages(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &clerk{say: Answer{Text: "ok"}}
		_, stop := r.start(with(c))
		defer stop()
		thread := r.fake.NewThread(r.place, "t", r.bob)
		r.done(r.fake.Slash(thread, r.ann, "mimikit", discordfake.Sub("tasks")))
		r.done(r.fake.Slash(r.dm().Place, r.ann, "mimikit", discordfake.Sub("tasks")))
		if got := c.calls[0].Conversation; got != r.thread(thread) {
			t.Errorf("conversation %v", got)
		}
		if got := c.calls[1].Conversation; got != r.dm() {
			t.Errorf("conversation %v", got)
		}
		// Written as a message.
		r.fake.Say(r.dm().Place, r.ann, "!tasks mine")
		r.await("an answer", func() bool { return len(r.fake.Said(r.dm().Place)) == 1 })
		r.fake.Say(r.dm().Place, r.ann, "tasks are what I do")
		if got := r.heard(1); got[0].Text != "tasks are what I do" {
			t.Errorf("heard %+v", got)
		}
		if said := r.fake.Said(r.dm().Place); said[0].Content != "ok" || said[0].Reference == nil {
			t.Errorf("said %+v", said)
		}
	})
}

func TestAnswersThatFail(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &clerk{fails: fmt.Errorf("run: %w", refusedError("there is no task t9"))}
		_, stop := r.start(with(c))
		defer stop()
		got := r.done(r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("cancel", discordfake.Opt("id", "t9"))))
		if got.Content != "⚠️ there is no task t9" {
			t.Errorf("content %q", got.Content)
		}
		// What went wrong inside is nobody's business.
		c.fails = errors.New("dial tcp 10.0.0.7:6379: refused")
		got = r.done(r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("cancel", discordfake.Opt("id", "t9"))))
		if got.Content != "⚠️ "+sorry {
			t.Errorf("content %q", got.Content)
		}
	})
	t.Run("long", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, stop := r.start(with(&clerk{say: Answer{Text: strings.Repeat("word ", 5000)}}))
			defer stop()
			got := r.done(r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("tasks")))
			if len(got.FollowUps) != 4 || !strings.Contains(got.FollowUps[3], "narrow") {
				t.Errorf("%d more messages", len(got.FollowUps))
			}
		})
	})
	t.Run("no commands", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			_, stop := r.start()
			defer stop()
			if got := r.done(r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("tasks"))); got.Content != "I know no commands here." {
				t.Errorf("content %q", got.Content)
			}
		})
	})
}

// What comes too late, as after a resume, is not done behind somebody's back.
func TestLateInteractions(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &clerk{}
		_, stop := r.start(with(c))
		stop()
		token := r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("cancel", discordfake.Opt("id", "t1")))
		time.Sleep(5 * time.Second)
		_, stop = r.start(with(c))
		defer stop()
		r.await("the attempt", func() bool { return len(r.fake.Calls("POST /interactions/{interaction}/{token}/callback")) == 1 })
		time.Sleep(time.Minute)
		if asked := c.was(); len(asked) != 0 || r.fake.Interaction(token).Type != 0 {
			t.Errorf("done all the same: %q", asked)
		}
	})
}

func TestAutocomplete(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &clerk{}
		_, stop := r.start(with(c))
		defer stop()
		got := r.done(r.fake.Complete(r.place, r.ann, "mimikit", discordfake.Sub("cancel", discordfake.Typing("id", "t1"))))
		if got.Type != 8 || len(got.Choices) != 25 || got.Choices[0] != "t99" {
			t.Errorf("got %+v", got)
		}
		if asked := c.was(); !slices.Equal(asked, []string{`complete cancel id "t1"`}) {
			t.Errorf("asked %q", asked)
		}
		c.fails = errors.New("away")
		if got := r.done(r.fake.Complete(r.place, r.ann, "mimikit", discordfake.Sub("cancel", discordfake.Typing("id", "")))); got.Type != 8 {
			t.Errorf("got %+v", got)
		}
	})
}

// Options come in the order in which somebody filled them in, and are words in the
// order of the command.
func TestOptionsStandInTheirOrder(t *testing.T) {
	t.Parallel()
	var i interaction
	i.Data.Options = []option{{Name: "usage", Type: 1, Options: []option{{Name: "id", Type: 3, Value: "t1"}, {Name: "of", Type: 3, Value: "task"}}}}
	got := i.words([]Command{{Name: "tasks"}, {Name: "usage", Args: []Arg{{Name: "of"}, {Name: "id"}}}})
	if !slices.Equal(got, []string{"usage", "task", "t1"}) {
		t.Errorf("got %q", got)
	}
}

func TestPressing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &clerk{say: Answer{Note: "**ann** chose Yes"}}
		d, stop := r.start(with(c))
		defer stop()
		p := r.part("Shall I?", func(p *adapters.Part) { p.Buttons = []chat.Button{{Label: "Yes", Value: "q1:yes"}} })
		id, err := r.post(d, r.dm(), p)
		if err != nil {
			t.Fatal(err)
		}
		r.fake.Press(id, r.ann, "mk:q1:yes")
		r.await("the buttons to go", func() bool {
			m, _ := r.fake.Message(id)
			return m.Components == nil
		})
		if m, _ := r.fake.Message(id); m.Content != "Shall I?\n\n**ann** chose Yes" {
			t.Errorf("content %q", m.Content)
		}
		if asked := c.was(); !slices.Equal(asked, []string{"pressed q1:yes"}) || c.calls[0].Conversation != r.dm() {
			t.Errorf("asked %q, %+v", asked, c.calls)
		}
		// A choice in a select, an answer for one person, and a button of nobody.
		c.say = Answer{Text: "Too late: bob said No."}
		token := r.fake.Press(id, r.ann, selectID, "q1:no")
		r.await("an answer", func() bool { return len(r.fake.Interaction(token).FollowUps) == 1 })
		token = r.fake.Press(id, r.ann, "foreign")
		r.await("an answer", func() bool { return len(r.fake.Interaction(token).FollowUps) == 1 })
		if asked := c.was(); !slices.Equal(asked, []string{"pressed q1:yes", "pressed q1:no"}) {
			t.Errorf("asked %q", asked)
		}
	})
}

func TestAskAboutAMessage(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start(with(&clerk{}))
		defer stop()
		m := r.fake.Say(r.place, r.bob, "the build is red", r.fake.Attaching("a.txt", "text/plain", []byte("x")))
		got := r.done(r.fake.Apps(m.ID, r.ann, askName))
		heard := r.heard(1)[0]
		if heard.Conversation != r.thread(m.ID) || heard.Author.ID != r.ann.ID || !heard.Addressed || len(heard.Attachments) != 2 {
			t.Errorf("heard %+v", heard)
		}
		if heard.FilesOf != m.ID { // the wish has an id of its own, under which Discord has no files
			t.Errorf("the files are said to be of message %q, want %q", heard.FilesOf, m.ID)
		}
		if heard.Attachments[0].Text != "the build is red\n[file a.txt]" || !strings.Contains(heard.Attachments[0].Name, "bob") {
			t.Errorf("attachments %+v", heard.Attachments)
		}
		if got.Type != 5 || !got.Ephemeral || !strings.Contains(got.Content, "<#"+m.ID+">") {
			t.Errorf("answer %+v", got)
		}
		if _, ok := r.fake.Thread(m.ID); !ok {
			t.Error("no thread was opened")
		}
		r.fake.Say(m.ID, r.ann, "and now?")
		r.heard(2)
	})
}

// While the store is away the wish is acknowledged all the same, and taken when
// it is back.
func TestAskWhileTheStoreIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		away := true
		r.inbox.fault = func(adapters.Message) error {
			mu.Lock()
			defer mu.Unlock()
			if away {
				return errors.New("away")
			}
			return nil
		}
		_, stop := r.start(with(&clerk{}))
		defer stop()
		token := r.fake.Apps(r.fake.Say(r.place, r.bob, "look").ID, r.ann, askName)
		if got := r.done(token); got.Answered.Sub(got.At) > 3*time.Second {
			t.Errorf("acknowledged after %v", got.Answered.Sub(got.At))
		}
		mu.Lock()
		away = false
		mu.Unlock()
		r.heard(1)
	})
}

func TestCommandsAreRegisteredOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &clerk{}
		for range 3 {
			_, stop := r.start(with(c))
			time.Sleep(time.Second)
			stop()
		}
		if n := r.fake.Synced(); n != 1 {
			t.Errorf("registered %d times, want once", n)
		}
		all := r.fake.Commands("")
		if len(all) != 3 || all[0]["name"] != "mimikit" || all[1]["default_member_permissions"] != "32" || all[2]["name"] != askName {
			t.Errorf("registered %v", all)
		}
		r.fake.Fail(discordfake.Fault{Route: "PUT /applications/{app}/guilds/{guild}/commands", Status: 429, RetryAfter: 10 * time.Minute, Times: 1})
		_, stop := r.start(with(c), func(o *Options) { o.DevGuild = r.guild })
		defer stop()
		from := time.Now()
		r.await("the registration", func() bool { return len(r.fake.Commands(r.guild)) == 3 })
		if took := time.Since(from); took < 10*time.Minute {
			t.Errorf("registered after %v, though Discord asked to wait for 10 minutes", took)
		}
	})
}

// The answer to an acknowledgement may be lost: what was asked is done, once.
func TestLostAcknowledgements(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &clerk{say: Answer{Text: "ok"}}
		_, stop := r.start(with(c))
		defer stop()
		r.fake.Fail(discordfake.Fault{Route: "POST /interactions/{interaction}/{token}/callback", LoseReply: true, Times: 1})
		if got := r.done(r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("tasks"))); got.Content != "ok" {
			t.Errorf("content %q", got.Content)
		}
		r.fake.Fail(discordfake.Fault{Route: "POST /interactions/{interaction}/{token}/callback", Break: true, Times: 1})
		if got := r.done(r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("cancel"))); got.Content != "ok" {
			t.Errorf("content %q", got.Content)
		}
		if asked := c.was(); !slices.Equal(asked, []string{"tasks", "cancel"}) {
			t.Errorf("asked %q", asked)
		}
	})
}

// However much is being done, whoever asks for something hears of it within three
// seconds.
func TestTooMuchToDo(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		c := &clerk{slow: 5 * time.Minute, say: Answer{Text: "ok"}}
		_, stop := r.start(with(c))
		defer stop()
		var tokens []string
		for range laneMost[laneAct] + 20 {
			tokens = append(tokens, r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("tasks")))
		}
		typed := r.fake.Complete(r.place, r.ann, "mimikit", discordfake.Sub("cancel", discordfake.Typing("id", "")))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		for i, token := range append(tokens, typed) {
			got := r.fake.Interaction(token)
			want := 5
			switch {
			case token == typed:
				want = 8
			case i >= laneMost[laneAct]:
				want = 4
			}
			if got.Type != want || want == 4 && (!got.Ephemeral || !strings.Contains(got.Content, "try again")) {
				t.Fatalf("interaction %d: %+v, want an answer of type %d", i, got, want)
			}
		}
	})
}

// An answer that came too fast for Discord is sent again, since it was not taken.
func TestAnswersThatAreTooFast(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		_, stop := r.start(with(&clerk{say: Answer{Text: strings.Repeat("word ", 1000)}}))
		defer stop()
		r.fake.Fail(discordfake.Fault{Route: "POST /webhooks/{app}/{token}", Status: 429, RetryAfter: 2 * time.Second, Times: 2})
		got := r.done(r.fake.Slash(r.place, r.ann, "mimikit", discordfake.Sub("tasks")))
		r.await("the rest", func() bool { return len(r.fake.Interaction(got.Token).FollowUps) == 2 })
	})
}
