package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// The first minute: nothing is configured, and there is an answer.
func TestOnce(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil).with("MIMIKIT_LLM_BASE_URL", "MIMIKIT_LLM_KEY", "MIMIKIT_LLM_MODEL",
		"MIMIKIT_TELLER_DEBOUNCE", "MIMIKIT_CHANNEL_LEASE", "MIMIKIT_OUTBOX_POST_TIMEOUT", "MIMIKIT_OUTBOX_LOOKUP_AFTER")
	out, stderr := d.run(0, "", "chat", "--once", "hi")
	if strings.TrimSpace(out) == "" || strings.Contains(out, "\x1b") {
		t.Errorf("output %q, want plain words", out)
	}
	if stderr != "" && d.hasRedis() {
		t.Errorf("error output %q, want none", stderr)
	}
	// Nothing is something else than no --once: it must not wait for an input.
	p := d.start("chat", "--once", "")
	if code := p.within(patience); code != 1 {
		t.Errorf("--once of nothing: exit code %d", code)
	}
	has(t, p.err.String(), "no text that I can read")
	if pid := d.redisPID(); pid != 0 {
		t.Errorf("redis-server %d is left behind", pid)
	}
}

func TestPipe(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Both it is."))
	out, stderr := d.run(0, "tea\ncoffee\n", "chat")
	if out != "Both it is.\n" || stderr != "" {
		t.Errorf("output %q, error output %q; want the one answer to both", out, stderr)
	}
	calls := d.model.Calls()
	if len(calls) == 0 {
		t.Fatal("the model was not asked")
	}
	has(t, string(calls[len(calls)-1].Body), "tea", "coffee")
	// The default command is chat, and what was said is remembered.
	if out, _ := d.run(0, "and milk\n"); out != "Both it is.\n" {
		t.Errorf("output %q", out)
	}
	calls = d.model.Calls()
	has(t, string(calls[len(calls)-1].Body), "coffee", "Both it is.", "and milk")
}

// An answer that takes too long is no longer waited for, and not lost.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	late := make(chan struct{})
	d := deploy(t, func(x *llmtest.Exchange) {
		select {
		case <-late:
		case <-t.Context().Done():
		}
		llmtest.Answers("At last.")(x)
	})
	d.serve()
	out, stderr := d.run(1, "", "chat", "--talk", "t", "--wait", "2s", "--once", "hi")
	close(late)
	if out != "" {
		t.Errorf("output %q", out)
	}
	has(t, stderr, "no answer came in time", "stored")
	d.record(nil).answeredOnce("t", "hi", "At last.")
}

func TestCalled(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil)
	for _, c := range []struct {
		args string
		code int
		say  string // on the output when all is well, else on the error output
	}{
		{"--help", 0, "talk to the bot"},
		{"--version", 0, "dev"},
		{"serve --help", 0, "without a terminal"},
		{"chaos --help", 0, "chaos tasks"},
		{"chaos messages --help", 0, "--seed"},
		{"chaos tasks --help", 0, "--seed"},
		{"serv", 2, "unexpected argument serv"},
		{"chat --onec hi", 2, "unknown flag --onec"},
		{"chat --once", 2, "expected string value"},
		{"chat --wait soon --once hi", 2, "--wait"},
		{"dead lost", 1, "no embedded server"}, // a channel's name, which only a node can judge
		{"dead replay", 2, "<id>"},
		{"bench --store disk", 2, "--store"},
		{"bench -n 0", 1, "1 or more is allowed"},
		{"bench --duration 1s", 1, "it needs --rate"},
		{"chaos --nodes 0", 1, "1 or more is allowed"},
		{"--config missing.yaml config check", 1, "missing.yaml"},
		{"dead list --limit 0", 1, "1 to 200 are allowed"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			out, stderr := d.run(c.code, "", strings.Fields(c.args)...)
			if c.code == 0 {
				has(t, strings.ToLower(out), c.say)
				return
			}
			has(t, stderr, c.say)
			if c.code == 2 {
				has(t, stderr, "Try 'mimikit")
			}
			if out != "" || strings.Contains(stderr, "goroutine") {
				t.Errorf("output %q, error output %q", out, stderr)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil)
	file := filepath.Join(t.TempDir(), "mimikit.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("name: Ada\nteller:\n  debounc: 1s\nchanel:\n  lease: 1s\n")
	for _, cmd := range []string{"config check", "serve", "chat --once hi", "streams"} {
		_, stderr := d.run(1, "", append([]string{"-c", file}, strings.Fields(cmd)...)...)
		has(t, stderr, file+":3", "teller.debounc", "did you mean debounce?", file+":4", "chanel", "did you mean channel?")
	}
	write("log:\n  level: loud\nchannel:\n  partitions: 0\n")
	_, stderr := d.run(1, "", "-c", file, "config", "check")
	has(t, stderr, "log.level", `"loud"`, "debug, info, warn, error", "channel.partitions", "0", "1 to 1024")

	_, stderr = d.with("MIMIKIT_TELLER_DEBONCE=1s").run(1, "", "config", "check")
	has(t, stderr, "MIMIKIT_TELLER_DEBONCE", "did you mean MIMIKIT_TELLER_DEBOUNCE?")

	write("name: Ada\n")
	d = d.with("MIMIKIT_CONFIG="+file, "MIMIKIT_LLM_HEADERS=X-Team=hidden-header",
		"MIMIKIT_REDIS_MODE=single", "MIMIKIT_REDIS_ADDRS=127.0.0.1:1", "MIMIKIT_REDIS_PASSWORD=hidden-password")
	out, _ := d.run(0, "", "config", "check")
	has(t, out, "The settings hold.")
	out, stderr = d.run(0, "", "config", "print")
	has(t, out, "Ada", file+":1", "# env MIMIKIT_LLM_KEY", "# default", "preset chat")
	for _, secret := range []string{llmtest.Key, "hidden"} {
		if strings.Contains(out+stderr, secret) {
			t.Errorf("config print shows %q:\n%s", secret, out)
		}
	}
	// What print writes is a configuration again.
	write(out)
	d.run(0, "", "config", "check")
	out, _ = d.run(0, "", "config", "keys")
	has(t, out, "MIMIKIT_TELLER_MAX_INPUT_WAIT", "teller.maxInputWait")
}

// The commands that look at a node say which commands make one.
func TestNothingRuns(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, nil)
	for _, dir := range []string{"missing", "left"} {
		if dir == "left" {
			d.run(0, "", "chat") // says nothing; the directory is there afterwards
		}
		for _, cmd := range []string{"streams", "dead list", "dead drop all", "dead replay 1/1-0"} {
			out, stderr := d.run(1, "", strings.Fields(cmd)...)
			has(t, stderr, d.dir, "'mimikit chat' or 'mimikit serve'")
			if out != "" || strings.Count(stderr, "\n") > 2 {
				t.Errorf("%s, %s directory: output %q, error output %q", cmd, dir, out, stderr)
			}
		}
	}
}

// The same commands beside a node that runs.
func TestLookAtNode(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	d := deploy(t, llmtest.Answers("Hello."))
	d.serve()
	out, _ := d.run(0, "", "streams")
	has(t, out, "CHANNEL", "user-input", "teller-reply", "nodes: 1, partitions owned: 16 of 16, dead letters: 0")
	if waiting := regexp.MustCompile(`(?m)^[a-z-]+ +[a-z]+ +([1-9]\d* +\d+|\d+ +[1-9])`).FindString(out); waiting != "" {
		t.Errorf("something waits where nothing was said: %q", waiting)
	}
	out, _ = d.run(0, "", "streams", "-p")
	has(t, out, "PARTITION", "OWNER", " left")
	out, _ = d.run(0, "", "dead", "list")
	has(t, out, "There are no dead letters.")
	out, _ = d.run(0, "", "dead", "replay", "all")
	has(t, out, "There are no dead letters to replay.")
	_, stderr := d.run(1, "", "dead", "drop", "7")
	has(t, stderr, `"7"`, "3/1763692800000-0")
	_, stderr = d.run(1, "", "dead", "drop", "3/1763692800000-0")
	has(t, stderr, "3/1763692800000-0")
	if got := d.once("t", "hi"); got != "Hello." {
		t.Errorf("beside a node, chat --once printed %q", got)
	}
}
