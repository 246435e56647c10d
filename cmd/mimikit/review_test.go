package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// A budget of 1,000 tokens: warned once, then stopped, with the words that people
// see; raised from the shell, all goes on at once, on the node that runs.
func TestBudgetOfAThousandTokens(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	d := deploy(t, llmtest.Answers(strings.TrimSpace(strings.Repeat("word ", 440))), "MIMIKIT_BUDGETS_USER_TOKENS=1000")
	// Small prompts, so that what a call uses is what its answer has.
	for name, text := range map[string]string{"system": "Answer.", "injection": "{{.Inputs}}"} {
		path := filepath.Join(d.dir+"-prompts", "agents", "thinker", name+".md")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	d = d.with("MIMIKIT_PROMPTS_DIR=" + d.dir + "-prompts")
	d.serve()
	const note, stopped = "% of your daily budget is used. Once all of it is, I cannot answer before 00:00 UTC on ", "I cannot answer: your daily budget for the language model is used up. It begins anew at 00:00 UTC on "
	for i, want := range []string{"", note, "", stopped, stopped} { // 44 %, 88 %, over it, and stopped
		got := d.once(fmt.Sprint("talk", i), "words, please")
		if told := strings.Contains(got, note); told != (want == note) || want != stopped && !strings.HasPrefix(got, "word word") {
			t.Errorf("answer %d: told is %v in %s", i+1, told, got[max(0, len(got)-200):])
		}
		if strings.HasPrefix(got, stopped) != (want == stopped) {
			t.Errorf("answer %d is %.200q", i+1, got)
		}
	}
	if n := len(d.model.Calls()); n != 3 {
		t.Errorf("the endpoint heard %d calls", n)
	}
	key := chat.Conversation{Platform: "console", Workspace: "local"}.UserKey(u.Username)
	out, _ := d.run(0, "", "feedback", "high_usage")
	has(t, out, "% of the daily budget of user "+key+", in tokens, is used.")
	out, _ = d.run(0, "", "budget", "user", key, "tokens", "20k")
	has(t, out, "20,000 tokens a day from now on", "(6%)")
	if got := d.once("talk9", "words, please"); !strings.HasPrefix(got, "word word") {
		t.Errorf("raised: %.200q", got)
	}
	out, _ = d.run(0, "", "budget")
	has(t, out, "20,000 tokens")
	out, _ = d.run(0, "", "audit")
	has(t, out, "budget user "+key, "set to 20,000 tokens a day")
	d.run(0, "", "budget", "user", key, "default")
	if got := d.once("talk9", "words, please"); !strings.HasPrefix(got, stopped) {
		t.Errorf("as configured again: %.200q", got)
	}
}

// Conversations that have gone quiet are reviewed, once, for those who run the bot,
// and the day's report sums all up.
func TestIdleReviewAndReport(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, func(x *llmtest.Exchange) {
		if strings.Contains(string(x.Call.Body), "You review a conversation between") {
			llmtest.Answers(`{"findings":[{"message":"The sum was wrong at first.","category":"quality","severity":"high","task":""}]}`)(x)
			return
		}
		llmtest.Answers("Four.")(x)
	}, "MIMIKIT_REVIEW_IDLE=1s", "MIMIKIT_BUDGETS_USER_TOKENS=100000")
	node, _ := d.serve()
	d.once("t", "two and two?")
	d.once("t", "three and one?")
	var list []chat.Feedback
	storetest.Eventually(t, "a review", func() error {
		out, _ := d.run(0, "", "feedback", "--json")
		if list = decoded[[]chat.Feedback](t, out); len(list) == 0 {
			return errors.New("nothing is filed")
		}
		return nil
	})
	if f := list[0]; len(list) > 2 || f.Kind != chat.FeedbackReview || f.Conversation.Key() != conversation("t") || f.Message != "The sum was wrong at first." || f.Severity != "high" {
		t.Errorf("filed %+v", list)
	}
	reviewed := func() (n int) {
		for _, c := range d.model.Calls() {
			if strings.Contains(string(c.Body), "You review a conversation between") {
				n++
			}
		}
		return n
	}
	// Nothing new was said: the next look finds nothing to ask the model.
	client := d.redis()
	defer func() { _ = client.Close() }()
	look := func() string { return client.Get(t.Context(), "mimikit:review:last").Val() }
	last, calls := look(), reviewed()
	storetest.Eventually(t, "a further round that asks nothing", func() error {
		now, asked := look(), reviewed()
		if now != last && asked == calls {
			return nil
		}
		if asked != calls { // the first of the two messages was reviewed before the second came
			last, calls = now, asked
		}
		return fmt.Errorf("asked %d times", asked)
	})
	if calls > 2 {
		t.Errorf("the model was asked %d times", calls)
	}
	out, _ := d.run(0, "", "usage", "user", "--json")
	booked := map[string]int64{}
	for _, r := range decoded[admin.UsageView](t, out).Rows {
		booked[r.Name] = r.Calls
	}
	if booked["review"] != int64(calls) || len(booked) != 2 {
		t.Errorf("booked %v, want the reviews on an account of their own", booked)
	}
	node.stops(stopSignal, 0) // which tells what was counted last
	d.serve()
	out, errs := d.run(0, "", "report")
	has(t, out, "# Mimikit on ", "2 accepted, 2 replies", "half within ", "| test-model | ", "| review |", "review · quality · high", "The sum was wrong at first.")
	path := filepath.Join(d.dir, "reports", "daily", time.Now().UTC().Format(time.DateOnly)+".md")
	if data, err := os.ReadFile(path); err != nil || !strings.Contains(errs, path) || !strings.Contains(string(data), "2 accepted, 2 replies") {
		t.Errorf("%s: %v\n%s", path, err, errs)
	}
	_, errs = d.run(1, "", "report", "tomorrow")
	has(t, errs, `day "tomorrow": allowed are today, yesterday, and `)
}

// What was remembered in a conversation is seen and forgotten from the shell.
func TestMemoryFromTheShell(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("I will."))
	d.model.Next(llmtest.CallsTools("", tool("remember", map[string]any{"content": "Releases are on Tuesdays.", "scope": "conversation"})))
	d.serve()
	d.once("t", "remember that releases are on Tuesdays")
	in := conversation("t")
	out, _ := d.run(0, "", "memory", "--in", in, "--json")
	list := decoded[[]admin.NoteView](t, out)
	if len(list) != 1 || list[0].Content != "Releases are on Tuesdays." || list[0].Scope != "conversation" || list[0].Conversation != in {
		t.Fatalf("remembered %+v", list)
	}
	out, _ = d.run(0, "", "memory")
	has(t, out, "Nothing is remembered")
	_, errs := d.run(1, "", "memory", "forget", list[0].ID)
	has(t, errs, "There is no note")
	out, _ = d.run(0, "", "memory", "forget", list[0].ID, "--in", in)
	has(t, out, "Forgot", list[0].ID)
	out, _ = d.run(0, "", "memory", "--in", in)
	has(t, out, "Nothing is remembered")
}

func TestReportDay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 23, 30, 0, 0, time.FixedZone("", -3*3600)) // the 22nd in UTC
	for word, want := range map[string]string{
		"": "2026-11-22", "Today": "2026-11-22", "yesterday": "2026-11-21", "2026-11-20": "2026-11-20",
		"2026-11-23": "", "2026-01-01": "", "20.11.2026": "", "x": "",
	} {
		day, err := reportDay(word, now)
		if got := day.Format(time.DateOnly); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q is %s, %v; want %q", word, got, err, want)
		}
	}
}
