package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// A purse is a platform at which Ada, who is an admin, says what Ann may spend.
type purse struct {
	settings []string
	order    func(command string) (answer string) // Ada, in a message
	say      func(thread, text string) string     // Ann, in a thread, or with "" in a new one, which it gives
	said     func(thread string) []string
	strays   func() []string // what the bot said to all outside of threads
}

func slackPurse(t *testing.T) purse {
	t.Helper()
	s, settings := slackAt(t, slackfake.Options{})
	s.AddUser(slackfake.User{ID: "U0ADA", Name: "ada"})
	s.Invite("C0TOWN", "U0ADA")
	return purse{
		settings: append(settings, "MIMIKIT_ACCESS_ADMINS=slack:U0ADA"),
		order: func(command string) string {
			t.Helper()
			before := len(s.Whispers())
			s.Say(slackfake.Say{User: "U0ADA", Text: "@bot !" + command})
			var blocks string
			storetest.Eventually(t, "Slack's answer to "+command, func() error {
				all := s.Whispers()
				if len(all) <= before {
					return errors.New("none yet")
				}
				blocks = all[before].Blocks
				return nil
			})
			return leaves(t, `{"blocks":`+blocks+`}`)
		},
		say: func(thread, text string) string {
			if thread != "" {
				s.Say(slackfake.Say{Text: text, Thread: thread})
				return thread
			}
			return s.Say(slackfake.Say{Text: "@bot " + text})
		},
		said:   func(thread string) []string { return texts(s.Messages("C0TOWN", thread)) },
		strays: func() []string { return texts(s.Messages("C0TOWN", "")) },
	}
}

func discordPurse(t *testing.T) purse {
	t.Helper()
	g := guildAt(t)
	ada := g.NewUser("ada")
	contents := func(list []discordfake.Message) (out []string) {
		for _, m := range list {
			out = append(out, m.Content)
		}
		return out
	}
	return purse{
		settings: append(g.settings, "MIMIKIT_ACCESS_ADMINS=discord:"+ada.ID),
		order: func(command string) string {
			t.Helper()
			m := g.Say(g.place, ada, g.Mention()+" !"+command)
			var got string
			storetest.Eventually(t, "Discord's answer to "+command, func() error {
				for _, x := range append(g.Said(g.place), g.Said(m.ID)...) {
					if x.Reference != nil && x.Reference.MessageID == m.ID {
						got = x.Content
						return nil
					}
				}
				return errors.New("none yet")
			})
			return got
		},
		say: func(thread, text string) string {
			if thread != "" {
				g.Say(thread, g.ann, text)
				return thread
			}
			return g.Say(g.place, g.ann, g.Mention()+" "+text).ID
		},
		said: func(thread string) []string { return contents(g.Said(thread)) },
		strays: func() (out []string) {
			for _, m := range g.Said(g.place) {
				if m.Reference == nil { // answers to commands stand beside them
					out = append(out, m.Content)
				}
			}
			return out
		},
	}
}

// An admin gives everybody 1,000 tokens a day, in chat. Who has nearly spent them reads
// so once, in the thread where they ask, and then, in each thread, that there is no more,
// until when, and what can be done; no model hears of it. The admin raises
// the budget, in chat, and all goes on at once.
func TestBudgetInChat(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	for platform, open := range map[string]func(*testing.T) purse{"slack": slackPurse, "discord": discordPurse} {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			k := open(t)
			answer := strings.TrimSpace(strings.Repeat("word ", 280))
			d := deploy(t, llmtest.Answers(answer), k.settings...)
			// Small prompts, so that what a call uses is about what its answer has.
			for name, text := range map[string]string{"system": "Answer.", "injection": "{{.Inputs}}"} {
				path := filepath.Join(d.dir+"-prompts", "agents", "thinker", name+".md")
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			d.with("MIMIKIT_PROMPTS_DIR=" + d.dir + "-prompts").serve()
			has(t, k.order("budget user tokens 1000"), "The budget of each person is 1,000 tokens a day from now on")

			said := map[string]int{} // :: thread → how many answers are in it
			// asks says something in a thread, or in a new one, and gives what is answered there.
			asks := func(thread *string, text string) string {
				t.Helper()
				*thread = k.say(*thread, text)
				said[*thread]++
				var last string
				storetest.Eventually(t, "an answer", func() error {
					got := k.said(*thread)
					if len(got) != said[*thread] {
						return fmt.Errorf("said %.300q, want %d answers", got, said[*thread])
					}
					last = got[len(got)-1]
					return nil
				})
				return last
			}
			const (
				note    = "% of your daily budget is used. Once all of it is, I cannot answer before 00:00 UTC on "
				stopped = "I cannot answer: your daily budget for the language model is used up. It begins anew at 00:00 UTC on "
			)
			var first, second string
			told := 0
			calls := 0
			for ; calls < 10; calls++ {
				got := asks(&first, "words, please")
				told += strings.Count(got, note)
				if strings.HasPrefix(got, stopped) {
					break
				}
				if !strings.HasPrefix(got, answer) {
					t.Fatalf("answered %.300q", got)
				}
			}
			if told != 1 || calls < 3 || len(d.model.Calls()) != calls {
				t.Errorf("told of the near end %d times in %d answers, of %d calls", told, calls, len(d.model.Calls()))
			}
			// Nor is there anything in another thread, and nobody is told there twice.
			if got := asks(&second, "words, please"); !strings.HasPrefix(got, stopped) || !strings.Contains(got, "an admin can raise it before that. What you wrote is kept") {
				t.Errorf("in another thread: %.300q", got)
			}
			if n := len(d.model.Calls()); n != calls {
				t.Errorf("%d calls left the process after the budget was spent", n-calls)
			}
			has(t, k.order("budget user everyone"), "The budget of each person is 1,000 tokens a day.")
			has(t, k.order("budget user tokens 20k"), "The budget of each person is 20,000 tokens a day from now on")
			for _, thread := range []*string{&first, &second} {
				if got := asks(thread, "words, please"); got != answer {
					t.Errorf("after it was raised: %.300q", got)
				}
			}
			if n := len(d.model.Calls()); n != calls+2 {
				t.Errorf("%d calls after it was raised, want 2", n-calls)
			}
			if got := k.strays(); len(got) != 0 {
				t.Errorf("said outside of the threads: %.300q", got)
			}
			out, _ := d.run(0, "", "audit")
			has(t, out, "budget user", "set to 1,000 tokens a day", "set to 20,000 tokens a day")
		})
	}
}
