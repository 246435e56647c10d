package worker

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/task"
)

func (b *expertBench) do(ctx context.Context) (task.Outcome, error) {
	return b.run(ctx, b.task, "make the tests pass", b)
}

// talkFile is all that the archive holds of the agent's talk.
func (b *expertBench) talkFile() string {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.o.Talks.Dir, "2026-11-21", "*-expert-t1-*.jsonl"))
	if err != nil || len(found) == 0 {
		b.t.Fatalf("no talk is kept: %v", err)
	}
	data, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		b.t.Fatal(err)
	}
	if info, _ := os.Stat(found[0]); info.Mode().Perm() != 0o600 {
		b.t.Errorf("the talk's file has mode %v", info.Mode())
	}
	return string(data)
}

func TestExpertWorks(t *testing.T) {
	t.Parallel()
	b := newExpertBench(t, "works")
	out, err := b.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out.Output != "All tests pass in /workspace." || out.ResultType != "code_change" {
		t.Errorf("result %+v", out)
	}
	if want := (chat.TaskUsage{Calls: 1, Prompt: 100, Cached: 50, Completion: 10}); out.Usage != want {
		t.Errorf("usage %+v, want %+v", out.Usage, want)
	}
	want := []string{
		"expert_start:Mend the build", "expert_command_start:go test ./...", "expert_command_end:go test ./...",
		"expert_files:update a.go", "expert_plan:1 of 2 done; next: two", "expert_message:First I look.", "expert_message:All tests pass in /workspace.",
	}
	if got := b.kinds(); !slices.Equal(got, want) {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	told := b.saw("told")
	for _, w := range []string{"make the tests pass", "You carry out one task for Mimikit", "none for commands"} {
		if !strings.Contains(told, w) {
			t.Errorf("the agent is not told %q:\n%s", w, told)
		}
	}
	if args := b.saw("args"); strings.Contains(args, "make the tests") || strings.Contains(args, "sk-secret") {
		t.Errorf("a list of processes shows the task or the key: %q", args)
	}
	md, err := os.ReadFile(filepath.Join(b.o.Archive.Dir, out.ArchivePath))
	if err != nil || !strings.Contains(string(md), "All tests pass") {
		t.Errorf("archived: %v\n%s", err, md)
	}
	talk := b.talkFile()
	for _, w := range []string{`"told":"You carry out`, `"type":"thread.started"`, `"ok":true`, "a later version"} {
		if !strings.Contains(talk, w) {
			t.Errorf("the talk lacks %q:\n%s", w, talk)
		}
	}
}

// It is given nothing of ours but what it needs, and its own home.
func TestExpertEnvironment(t *testing.T) {
	t.Setenv("MIMIKIT_SLACK_BOT_TOKEN", "xoxb-not-for-agents")
	b := newExpertBench(t, "works", func(o *ExpertOptions) {
		o.Endpoint.Headers = map[string]string{"X-Org": "hunter22"}
		o.Env["HTTPS_PROXY"] = "http://proxy:1"
	})
	if _, err := b.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	env := b.saw("env")
	for _, w := range []string{agentKey + "=", "HTTPS_PROXY=http://proxy:1", "NO_PROXY=127.0.0.1", "CODEX_HOME=" + b.o.Homes} {
		if !strings.Contains(env, w) {
			t.Errorf("it lacks %s:\n%s", w, env)
		}
	}
	args := b.saw("args")
	for _, ours := range []string{"xoxb", os.Getenv("HOME") + "\n", "sk-secret", "hunter22"} {
		if strings.Contains(env, ours) || strings.Contains(args, ours) {
			t.Errorf("it is given what is ours, %q:\n%s\n%q", ours, env, args)
		}
	}
	for _, w := range []string{`exclude=["` + agentKey + `"]`, `base_url="http://127.0.0.1:`, `sandbox_mode="workspace-write"`, "network_access=false", `model="gpt-test"`} {
		if !strings.Contains(args, w) {
			t.Errorf("the settings lack %s: %q", w, args)
		}
	}
	// Another conversation's home is another.
	first, release, err := b.home(thread.Key())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	second, release2, err := b.home("slack/T1/C2/9")
	if err != nil || first == second {
		t.Fatalf("homes %s and %s: %v", first, second, err)
	}
	defer release2()
	if info, _ := os.Stat(first); info.Mode().Perm() != 0o700 {
		t.Errorf("a home has mode %v", info.Mode())
	}
}

func TestExpertFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how, says, output string
		edit              func(*ExpertOptions)
	}{
		{"fails", "not set up correctly", "I tried.", nil},
		{"odd", "the moon is wrong, see [address] and [secret]", "", nil},
		{"full", "longer than the language model can read", "", nil},
		{"crashes", "exit code 101: thread 'main' panicked at /agent/x", "", nil},
		{"dies", "killed from outside", "", nil},
		{"silent", "without a result", "", nil},
		{"stalls", "silent for too long and was ended after 300ms", "", func(o *ExpertOptions) { o.Stall = 300 * time.Millisecond }},
		{"plain-fails", "exit code 3: out of luck in /workspace", "half", func(o *ExpertOptions) { o.Agent = Plain }},
		{"works", "the budget of the task", "", func(o *ExpertOptions) { o.Ledger = &ledger{refuse: true} }},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			b := newExpertBench(t, c.how)
			if c.edit != nil {
				c.edit(&b.o)
				b.renew()
			}
			out, err := b.do(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.says) || out.Output != c.output {
				t.Errorf("got %+v, %v; want %q", out, err, c.says)
			}
			for _, leak := range []string{"sk-secret", "10.0.0.1", b.o.Homes} {
				if err != nil && strings.Contains(err.Error(), leak) {
					t.Errorf("the error tells %q: %v", leak, err)
				}
			}
			if md, _ := os.ReadFile(filepath.Join(b.o.Archive.Dir, out.ArchivePath)); !strings.Contains(string(md), "Not done") {
				t.Errorf("a failure is not archived:\n%s", md)
			}
		})
	}
}

func TestPlainAgent(t *testing.T) {
	t.Parallel()
	b := newExpertBench(t, "plain", func(o *ExpertOptions) { o.Agent = Plain })
	out, err := b.do(t.Context())
	if err != nil || out.Output != "looking\nIt is 42." || out.ResultType != "text" {
		t.Errorf("%+v, %v", out, err)
	}
	if told := b.saw("told"); !strings.Contains(told, "make the tests pass") {
		t.Errorf("it is told %q", told)
	}
	if env := b.saw("env"); strings.Contains(env, "sk-secret") {
		t.Errorf("it has a key that it did not ask for:\n%s", env)
	}
	b = newExpertBench(t, "plain", func(o *ExpertOptions) { o.Agent, o.Args = Plain, []string{"-p", "do: {prompt}"} })
	if _, err := b.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.saw("told") != "" || !strings.Contains(b.saw("args"), "-p\x00do: You carry out") {
		t.Errorf("started with %q and told %q", b.saw("args"), b.saw("told"))
	}
}
