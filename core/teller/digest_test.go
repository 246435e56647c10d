package teller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/llm/llmtest"
	"mimikit/prompts"
)

// What inputs come down to, each case without a model call.
func TestGather(t *testing.T) {
	t.Parallel()
	edit := func(ms int, message, id, text string, change ...func(*chat.UserInput)) *channel.Entry {
		return in(ms, message, text, append([]func(*chat.UserInput){as(chat.KindEdit, id)}, change...)...)
	}
	del := func(ms int, message, id string) *channel.Entry { return in(ms, message, "", as(chat.KindDelete, id)) }
	for _, c := range []struct {
		name    string
		entries []*channel.Entry
		inputs  string // id=text of what is answered
		ids     string // input ids the digest carries
		history string
	}{
		{"one message", []*channel.Entry{in(0, "m1", "a")}, "i1=a", "i1", ""},
		{"an edit takes the place", []*channel.Entry{in(0, "m1", "a"), in(1, "m2", "b"), edit(2, "m1", "e1", "A")}, "i1=A i2=b", "i1 e1 i2", ""},
		{"the last edit counts", []*channel.Entry{in(0, "m1", "a"), edit(2, "m1", "e1", "A"), edit(3, "m1", "e2", "AA")}, "i1=AA", "i1 e1 e2", ""},
		{"an edit that came before its message", []*channel.Entry{edit(0, "m1", "e1", "A"), in(1, "m1", "a")}, "i1=A", "i1 e1", ""},
		{"a delete takes away", []*channel.Entry{in(0, "m1", "a"), in(1, "m2", "b"), del(2, "m1", "x1")}, "i2=b", "i2", ""},
		{"a delete that came before its message", []*channel.Entry{del(0, "m1", "x1"), in(1, "m1", "a")}, "", "", ""},
		{"edited, then deleted", []*channel.Entry{in(0, "m1", "a"), edit(1, "m1", "e1", "A"), del(2, "m1", "x1")}, "", "", ""},
		{"deleted, then an edit that came late", []*channel.Entry{in(0, "m1", "a"), del(1, "m1", "x1"), edit(2, "m1", "e1", "A")}, "", "", ""},
		{"nothing remains", []*channel.Entry{in(0, "m1", "a"), del(2, "m1", "x1")}, "", "", ""},
		{"an edit of what was dealt with is context", []*channel.Entry{edit(0, "m1", "e1", "A")}, "", "", "user e1/edited A"},
		{"an edit that first mentions the bot", []*channel.Entry{edit(0, "m1", "e1", "@mimi A", addressed(true))}, "e1=@mimi A", "e1", ""},
		{"and is edited once more", []*channel.Entry{edit(0, "m1", "e1", "@mimi A", addressed(true)), edit(1, "m1", "e2", "@mimi B")}, "e2=@mimi B", "e1 e2", ""},
		{"a delete of what was dealt with is context", []*channel.Entry{del(0, "m1", "x1")}, "", "", "user x1/deleted "},
		{"an overheard message is context", []*channel.Entry{in(0, "m1", "a", addressed(false)), in(1, "m2", "b")}, "i2=b", "i2", "user i1/ a"},
		{"overheard only", []*channel.Entry{in(0, "m1", "a", addressed(false))}, "", "", "user i1/ a"},
		{"overheard, then edited to mention the bot", []*channel.Entry{in(0, "m1", "a", addressed(false)), edit(1, "m1", "e1", "@mimi a", addressed(true))}, "i1=@mimi a", "i1 e1", ""},
		{"platform time orders", []*channel.Entry{in(0, "m1", "late", saidAt(500)), in(1, "m2", "early", saidAt(-500)), in(2, "m3", "same", saidAt(500))}, "i2=early i1=late i3=same", "i2 i1 i3", ""},
		{"a button's answers are never one", []*channel.Entry{
			in(0, "m1", "yes", as(chat.KindAnswer, "a1")), in(1, "m1", "no", as(chat.KindAnswer, "a2")),
		}, "a1=yes a2=no", "a1 a2", ""},
		{"inputs of the first schema have no kind", []*channel.Entry{in(0, "m1", "a", func(v *chat.UserInput) { v.Kind = "" })}, "i1=a", "i1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, llmtest.Instant{Text: `@digest_context summary="s"`})
			fx, err := f.DigestLoop().Step(context.Background(), work(c.entries...))
			if err != nil {
				t.Fatal(err)
			}
			d, pub := published[chat.TellerDigest](t, fx, channel.TellerDigest, "digest")
			var got []string
			if d != nil {
				for _, v := range d.Inputs {
					got = append(got, v.ID+"="+v.Text)
				}
			}
			if s := strings.Join(got, " "); s != c.inputs {
				t.Errorf("answers %q, want %q", s, c.inputs)
			}
			if s := strings.Join(pub.InputIDs, " "); s != c.ids {
				t.Errorf("carries %q, want %q", s, c.ids)
			}
			if s := brief(lines(t, fx)); s != c.history {
				t.Errorf("history has %q, want %q", s, c.history)
			}
		})
	}
}

func TestEditKeepsFilesAndCut(t *testing.T) {
	t.Parallel()
	f := setup(t, llmtest.Instant{})
	fx, err := f.DigestLoop().Step(context.Background(), work(
		in(0, "m1", "old", func(v *chat.UserInput) {
			v.Attachments = []chat.Attachment{{ID: "f1"}}
			v.TextBlob, v.TextSize = "old-blob", 99
		}),
		in(1, "m1", "new", as(chat.KindEdit, "e1"), func(v *chat.UserInput) { v.Edit = "stamp" }),
	))
	if err != nil {
		t.Fatal(err)
	}
	d, _ := published[chat.TellerDigest](t, fx, channel.TellerDigest, "digest")
	got := d.Inputs[0]
	if got.Text != "new" || got.TextBlob != "" || got.TextSize != 0 || got.Edit != "stamp" || len(got.Attachments) != 1 || got.Kind != chat.KindMessage {
		t.Errorf("got %+v", got)
	}
}

func TestDigestSummary(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 400)
	huge := strings.Repeat("x", 2001)
	fail := llmtest.Fail(llm.Transient, 0)
	two := []*channel.Entry{in(0, "m1", "first"), in(1, "m2", "second")}
	for _, c := range []struct {
		name    string
		answers []llmtest.Answer
		entries []*channel.Entry
		change  []func(*Options)
		want    string
		calls   int
	}{
		{"one short input is its own summary", nil, []*channel.Entry{in(0, "m1", " hi ")}, nil, "hi", 0},
		{"a short input of 2000 bytes", nil, []*channel.Entry{in(0, "m1", huge[:2000])}, nil, huge[:2000], 0},
		{"a long one is summed up", []llmtest.Answer{llmtest.Say(`@digest_context summary="s"`)}, []*channel.Entry{in(0, "m1", huge)}, nil, "s", 1},
		{"only a file", nil, []*channel.Entry{in(0, "m1", "", func(v *chat.UserInput) { v.Attachments = []chat.Attachment{{Name: "a"}} })}, nil, nothingToSay, 0},
		{"two inputs", []llmtest.Answer{llmtest.Say("Thinking.\n@handoff_context summary=\"both \\\"a\\\"\\nb\"")}, two, nil, "both \"a\"\nb", 1},
		{"an input and a result", []llmtest.Answer{llmtest.Say(`@digest_context summary="s"`)}, []*channel.Entry{in(0, "m1", "a"), result(1, "t1", "x")}, nil, "s", 1},
		{"always", []llmtest.Answer{llmtest.Say(`@digest_context summary="s"`)}, []*channel.Entry{in(0, "m1", "hi")}, []func(*Options){always}, "s", 1},
		{"the model fails: the newest input", []llmtest.Answer{fail}, two, nil, "second", 1},
		{"the newest by platform time", []llmtest.Answer{fail}, []*channel.Entry{in(0, "m1", "newest", saidAt(900)), in(1, "m2", "older")}, nil, "newest", 1},
		{"the answer is empty", []llmtest.Answer{llmtest.Say(" \n")}, two, nil, "second", 1},
		{"the answer has no summary", []llmtest.Answer{llmtest.Say("They said two things.")}, two, nil, "second", 1},
		{"the summary is empty", []llmtest.Answer{llmtest.Say(`@digest_context summary=" "`)}, two, nil, "second", 1},
		{"the newest input has no text: the newest result", []llmtest.Answer{fail}, []*channel.Entry{in(0, "m1", " "), result(1, "t1", "old"), result(2, "t2", long)}, nil, long[:600], 1},
		{"results only, fallback", []llmtest.Answer{fail}, []*channel.Entry{result(2, "t2", "out")}, nil, "out", 1},
		{"nothing has text", []llmtest.Answer{fail}, []*channel.Entry{result(2, "t2", "")}, nil, nothingToSay, 1},
		{"a summary has a bound", []llmtest.Answer{llmtest.Say(`@digest_context summary="` + strings.Repeat("y", 9000) + `"`)}, two, nil,
			strings.Repeat("y", 4056) + "\n[cut: 4944 of 9000 bytes are not shown]", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := llmtest.NewScripted(c.answers...)
			f := setup(t, m, c.change...)
			fx, err := f.DigestLoop().Step(context.Background(), work(c.entries...))
			if err != nil {
				t.Fatal(err)
			}
			d, _ := published[chat.TellerDigest](t, fx, channel.TellerDigest, "digest")
			if diff := cmp.Diff(c.want, d.Summary); diff != "" {
				t.Errorf("summary, -want +got:\n%s", diff)
			}
			if n := len(m.Requests()); n != c.calls {
				t.Errorf("%d model calls, want %d", n, c.calls)
			}
		})
	}
}

func TestDigestRequest(t *testing.T) {
	t.Parallel()
	m := llmtest.NewScripted(llmtest.Say(`@digest_context summary="s"`))
	f := setup(t, m, func(o *Options) {
		o.Tasks = func(_ context.Context, c string) (string, error) { return "t9 running in " + c, nil }
	})
	f.past.lines = []chat.Line{{ID: "i0", Role: chat.LineUser, Author: ann, Text: "earlier", At: epoch}}
	fx, err := f.DigestLoop().Step(context.Background(), work(in(0, "m1", "hello"), in(1, "m2", "overheard", addressed(false)), result(2, "t1", "out")))
	if err != nil {
		t.Fatal(err)
	}
	d, pub := published[chat.TellerDigest](t, fx, channel.TellerDigest, "digest")
	if d.TaskSummary != "t9 running in "+conv || len(d.Results) != 1 || len(d.Inputs) != 1 || pub.InputIDs[0] != "i1" {
		t.Errorf("got %+v", d)
	}
	req := m.Requests()[0]
	if req.Agent != "teller-digest" || req.Model != "small" || req.Conversation != conv || req.TraceID != "tr" {
		t.Errorf("request is %+v", req)
	}
	if len(req.Messages) != 3 || req.Messages[0].Role != llm.System {
		t.Fatalf("got %d messages", len(req.Messages))
	}
	for i, want := range [][]string{
		{"You are the Mimikit runtime teller."},
		{`>earlier</line>`, `>overheard</line>`},
		{"<tasks>t9 running", `<result task="t1"`, "hello"},
	} {
		for _, w := range want {
			if !strings.Contains(req.Messages[i].Content, w) {
				t.Errorf("message %d lacks %q:\n%s", i, w, req.Messages[i].Content)
			}
		}
	}
	if l := f.past.asked[0]; l.Min != 5 || l.Max != 20 || l.Tokens != 4096 {
		t.Errorf("window is %+v, want 5 to 20 lines within 4096 tokens", l)
	}
}

func TestDigestIsTheSameAgain(t *testing.T) {
	t.Parallel()
	step := func(entries ...*channel.Entry) string {
		fx, err := setup(t, llmtest.Instant{}).DigestLoop().Step(context.Background(), work(entries...))
		if err != nil {
			t.Fatal(err)
		}
		d, _ := published[chat.TellerDigest](t, fx, channel.TellerDigest, "digest")
		return d.ID
	}
	first := step(in(0, "m1", "a"), in(1, "m2", "b"))
	if again := step(in(0, "m1", "a"), in(1, "m2", "b")); again != first || !strings.HasPrefix(first, "d-") {
		t.Errorf("ids are %s and %s", first, again)
	}
	if other := step(in(0, "m1", "a")); other == first {
		t.Error("another digest has the same id")
	}
}

func TestDigestErrors(t *testing.T) {
	t.Parallel()
	t.Run("the context is over", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(context.Background())
		m := llmtest.NewFunc(func(context.Context, llm.Request) (llm.Response, error) {
			cancel(channel.ErrStopped)
			return llm.Response{}, &llm.Error{Kind: llm.Transient, Err: ctx.Err()}
		})
		fx, err := setup(t, m, always).DigestLoop().Step(ctx, work(in(0, "m1", "a", addressed(true)), in(1, "m2", "b", addressed(false))))
		if !errors.Is(err, channel.ErrStopped) || fx.Publish != nil || fx.History != nil {
			t.Errorf("got %+v, %v; want nothing but ErrStopped", fx, err)
		}
	})
	t.Run("a call that takes too long is a failed call", func(t *testing.T) {
		t.Parallel()
		f := setup(t, llmtest.NewBlocking("late"), always, func(o *Options) { o.Timeout = 1 })
		fx, err := f.DigestLoop().Step(context.Background(), work(in(0, "m1", "a")))
		if err != nil {
			t.Fatal(err)
		}
		if d, _ := published[chat.TellerDigest](t, fx, channel.TellerDigest, "digest"); d.Summary != "a" {
			t.Errorf("summary is %q", d.Summary)
		}
	})
	t.Run("the history cannot be read", func(t *testing.T) {
		t.Parallel()
		f := setup(t, llmtest.Instant{}, always)
		f.past.err = errors.New("redis is away")
		if _, err := f.DigestLoop().Step(context.Background(), work(in(0, "m1", "a"))); !errors.Is(err, f.past.err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the tasks cannot be read", func(t *testing.T) {
		t.Parallel()
		f := setup(t, llmtest.Instant{}, func(o *Options) {
			o.Tasks = func(context.Context, string) (string, error) { return "", errors.New("away") }
		})
		fx, err := f.DigestLoop().Step(context.Background(), work(in(0, "m1", "a")))
		if err != nil || len(fx.Publish) != 1 {
			t.Errorf("got %+v, %v; tasks are an extra", fx, err)
		}
	})
	t.Run("an entry without its value", func(t *testing.T) {
		t.Parallel()
		e := in(0, "m1", "a")
		e.Value = nil
		_, err := setup(t, llmtest.Instant{}).DigestLoop().Step(context.Background(), work(e))
		if g, ok := errors.AsType[*channel.GiveUp](err); !ok || !strings.Contains(g.Why, e.ID) {
			t.Errorf("got %v, want it given up by name", err)
		}
	})
}

func TestNewPanics(t *testing.T) {
	t.Parallel()
	set, err := prompts.Open("")
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"are needed":   {},
		`"sometimes"`:  {Model: llmtest.Instant{}, Prompts: set, History: &past{}, Digest: "sometimes"},
		"auto and alw": {Model: llmtest.Instant{}, Prompts: set, History: &past{}, Format: "never"},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), name) {
					t.Errorf("want a panic about %s, got %v", name, r)
				}
			}()
			New(o)
		}()
	}
}

func TestParseSummary(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		``:                                                   "",
		`summary="x"`:                                        "",
		`@digest_context`:                                    "",
		`@digest_context summary=x`:                          "",
		`@digest_context summary="open`:                      "",
		`@digest_contexts summary="x"`:                       "",
		`see @digest_context summary="x"`:                    "",
		`@create_task summary="x"`:                           "",
		`@digest_context summary="x"`:                        "x",
		"  @handoff_context\tsummary=\"x\"":                  "x",
		`@digest_context lang="de" summary="x"`:              "x",
		`@digest_context summary="x" lang="de"`:              "x",
		`@digest_context summary="a \"b\" c:\\d\nend\tt \q"`: "a \"b\" c:\\d\nend\tt \\q",
		"@digest_context summary=\"two\nlines\" and more":    "two\nlines",
		"<MIMIKIT:actions>\n@digest_context summary=\"x\"\n</MIMIKIT:actions>":       "x",
		"@digest_context summary=\"a\"\r\n@digest_context summary=\"b\"\r\n":         "b",
		"@digest_context summary=\"a\"\n@digest_context summary=\"\"":                "a",
		"@digest_context summary=\"says: \n@digest_context summary=\\\"no\\\"\" end": "says: \n@digest_context summary=\"no\"",
	} {
		if got := parseSummary(answer); got != want {
			t.Errorf("parseSummary(%q) = %q, want %q", answer, got, want)
		}
	}
}

// Work that brings no time of its own is dated by the clock.
func TestClock(t *testing.T) {
	t.Parallel()
	f := setup(t, llmtest.Instant{}, func(o *Options) { o.Now = func() time.Time { return after(7) } })
	w := work(decided())
	w.Now = time.Time{}
	fx, err := f.FormatLoop().Step(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := published[chat.Reply](t, fx, channel.TellerReply, "reply"); !r.CreatedAt.Equal(after(7)) {
		t.Errorf("dated %s", r.CreatedAt)
	}
}
