package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/llm"
	"mimikit/core/store/storetest"
)

// A desk is a platform at which Ann asks for something, and Ben, who is an operator,
// reads along.
type desk struct {
	settings []string
	say      func(text string) (thread string) // Ann, to the bot
	said     func(thread string) []string      // by the bot
	// asked gives the post with buttons in a thread and what they stand for; "" where
	// there is none.
	asked func(thread string) (post string, values []string)
	press func(who, post, value string) (token string)
	// answer is what the one who pressed reads, and whether nobody else does.
	answer func(token string) (text string, alone bool)
	// shows reports whether a post, which had buttons, has none any more and says this.
	shows func(post, words string) bool
}

// buttons are the values of the buttons in a post's JSON.
func buttons(data, key string) (values []string) {
	for _, part := range strings.Split(data, `"`+key+`":"`)[1:] {
		if v, _, _ := strings.Cut(part, `"`); strings.Contains(v, "question:") {
			values = append(values, v)
		}
	}
	return values
}

func slackDesk(t *testing.T) desk {
	t.Helper()
	s, settings := slackAt(t, slackfake.Options{})
	s.AddUser(slackfake.User{ID: "U0BEN", Name: "ben"})
	s.Invite("C0TOWN", "U0BEN")
	find := func(ts string) (m slackfake.Message) {
		for _, thread := range append(s.Messages("C0TOWN", ""), s.Posted()...) {
			if thread.TS == ts {
				m = thread
			}
		}
		return m
	}
	return desk{
		settings: append(settings, "MIMIKIT_ACCESS_OPERATORS=slack:U0BEN"),
		say:      func(text string) string { return s.Say(slackfake.Say{Text: "@bot " + text}) },
		said:     func(thread string) []string { return texts(s.Messages("C0TOWN", thread)) },
		asked: func(thread string) (string, []string) {
			for _, m := range s.Messages("C0TOWN", thread) {
				if values := buttons(m.Blocks, "value"); len(values) > 0 {
					return m.TS, values
				}
			}
			return "", nil
		},
		press: func(who, post, value string) string {
			return s.Press(map[string]string{"ann": "U0ANN", "ben": "U0BEN"}[who], "C0TOWN", post, value)
		},
		answer: func(token string) (string, bool) {
			for _, a := range s.Answers() {
				if a.Interaction == token && a.Body != "" && a.Body != "{}" {
					return a.Body, strings.Contains(a.Body, "ephemeral")
				}
			}
			return "", false
		},
		shows: func(post, words string) bool {
			if m := find(post); m.Edited && strings.Contains(m.Blocks, words) && !strings.Contains(m.Blocks, `"button"`) {
				return true
			}
			return slices.ContainsFunc(s.Answers(), func(a slackfake.Answer) bool {
				return strings.Contains(a.Body, `"replace_original":true`) && strings.Contains(a.Body, words) && !strings.Contains(a.Body, `"button"`)
			})
		},
	}
}

func discordDesk(t *testing.T) desk {
	t.Helper()
	g := guildAt(t)
	ben := g.NewUser("ben")
	who := map[string]discordfake.User{"ann": g.ann, "ben": ben}
	var pressed []string
	return desk{
		settings: append(g.settings, "MIMIKIT_ACCESS_OPERATORS=discord:"+ben.ID),
		say:      func(text string) string { return g.Say(g.place, g.ann, g.Mention()+" "+text).ID },
		said: func(thread string) (out []string) {
			for _, m := range g.Said(thread) {
				out = append(out, m.Content)
			}
			return out
		},
		asked: func(thread string) (string, []string) {
			for _, m := range g.Said(thread) {
				if values := buttons(string(m.Components), "custom_id"); len(values) > 0 {
					return m.ID, values
				}
			}
			return "", nil
		},
		press: func(name, post, value string) string {
			token := g.Press(post, who[name], value)
			pressed = append(pressed, token)
			return token
		},
		answer: func(token string) (string, bool) {
			i := g.Interaction(token)
			return strings.Join(append([]string{i.Content}, i.FollowUps...), "|"), i.Ephemeral || i.Type == 6
		},
		shows: func(post, words string) bool {
			m, _ := g.Message(post)
			if strings.Contains(m.Content, words) && !strings.Contains(string(m.Components), "custom_id") {
				return true
			}
			return slices.ContainsFunc(pressed, func(token string) bool {
				i := g.Interaction(token)
				return strings.Contains(i.Content, words) && !strings.Contains(string(i.Rows), "custom_id")
			})
		},
	}
}

// writes counts how often tasks of these data directories began to write a file.
func writes(t *testing.T, dirs ...string) (n int) {
	t.Helper()
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "task-progress", "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				if strings.Contains(line, `"action_call_start"`) && strings.Contains(line, `"write_file"`) {
					n++
				}
			}
		}
	}
	return n
}

// What only an operator may allow is asked for with buttons, on each platform. Who may
// not is told so and nobody else is; the operator's press counts, at whichever node it
// comes to, and once.
func TestApprovalsByButton(t *testing.T) {
	t.Parallel()
	for platform, open := range map[string]func(*testing.T) desk{"slack": slackDesk, "discord": discordDesk} {
		for name, c := range map[string]struct {
			value  int // of the button that Ben presses; -1 is none
			shows  string
			told   string // to the model, when it was not allowed
			audit  string
			writes int
		}{
			"allowed after a kill, by another node": {0, "ben answered: Allow once", "", "allowed: Allow once", 1},
			"refused":                               {2, "ben answered: Refuse", "ben refused it", "refused", 0},
			"nobody answers":                        {-1, "the default was taken: Refuse", "nobody allowed it in time", "nobody answered in time", 0},
		} {
			t.Run(platform+", "+name, func(t *testing.T) {
				t.Parallel()
				server := storetest.NewServer(t, "--appendonly", "yes", "--appendfsync", "always")
				k := open(t)
				m := &mind{steps: []llm.ToolCall{
					tool("write_file", map[string]any{"path": "log", "content": "written\n"}),
					tool("respond", map[string]any{"output": "I went on."}),
				}}
				d := deploy(t, m.behave, append(k.settings,
					"MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS="+server.Addr(), "MIMIKIT_APPROVALS_TOOLS=write_file", "MIMIKIT_APPROVALS_BY=operator",
					"MIMIKIT_WORKER_LEASE=1s", "MIMIKIT_WORKER_HEARTBEAT=300ms")...)
				d = d.with("MIMIKIT_WORKSPACES_DIR=" + d.dir + "-files")
				other := d.with("MIMIKIT_DATA_DIR=" + d.dir + "-second")
				node, _ := d.serve()
				thread := k.say("work: write")
				var post string
				var values []string
				storetest.Eventually(t, "the question", func() error {
					if post, values = k.asked(thread); len(values) != 3 {
						return fmt.Errorf("%d buttons, said %q", len(values), k.said(thread))
					}
					return nil
				})
				if got := strings.Join(k.said(thread), "|"); !strings.Contains(got, `{"path":"log","content":"written\n"}`) && !strings.Contains(got, `"content":"written\n"`) {
					t.Errorf("said %q", got)
				}
				if c.value < 0 {
					_, id, _ := strings.Cut(values[0], "question:")
					id, _, _ = strings.Cut(id, ":")
					d.record(redis.NewClient(&redis.Options{Addr: server.Addr()})).overdue(id)
				} else {
					node.kill()
					other.serve()
					refused := k.press("ann", post, values[0])
					storetest.Eventually(t, "the refusal of who may not", func() error {
						if text, alone := k.answer(refused); !alone || !strings.Contains(text, "This question is for operators and admins") {
							return fmt.Errorf("%q, %v", text, alone)
						}
						return nil
					})
					if n := writes(t, d.dir, d.dir+"-second"); n != 0 {
						t.Errorf("written %d times", n)
					}
					k.press("ben", post, values[c.value])
					k.press("ben", post, values[c.value]) // as people do
				}
				storetest.Eventually(t, "the result and the changed post", func() error {
					got := strings.Join(k.said(thread), "|")
					if !strings.Contains(got, "The task is over: I went on.") || !k.shows(post, c.shows) {
						return fmt.Errorf("said %q, changed %v", got, k.shows(post, c.shows))
					}
					return nil
				})
				if n := writes(t, d.dir, d.dir+"-second"); n != c.writes {
					t.Errorf("written %d times, want %d", n, c.writes)
				}
				var told strings.Builder
				for _, call := range d.model.Calls() {
					told.Write(call.Body)
				}
				if !strings.Contains(told.String(), c.told) {
					t.Errorf("the model was not told %q", c.told)
				}
				out, _ := other.run(0, "", "audit")
				has(t, out, "approve: write_file", c.audit)
				if c.value >= 0 {
					has(t, out, "answer q", "refused")
				}
			})
		}
	}
}
