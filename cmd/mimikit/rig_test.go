package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/feed"
	"mimikit/core/history"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
)

// patience bounds every wait for a process: far above what any of them takes.
const patience = 2 * time.Minute

// A deployment is a data directory, a model, and the processes that use them.
// What a test starts in it ends with the test.
type deployment struct {
	*testing.T
	dir   string
	model *llmtest.Server // where nothing else is set
	env   map[string]string
}

// deploy makes a deployment whose model does as told. Settings are environment
// variables, "NAME=value"; they win over what is usual here: short waits and no
// port.
func deploy(t *testing.T, model llmtest.Behavior, settings ...string) *deployment {
	t.Helper()
	// Not t.TempDir, whose names are too long for the path of a socket.
	dir, err := os.MkdirTemp("", "mimikit-cmd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &deployment{T: t, dir: filepath.Join(dir, "data"), model: llmtest.NewServer(t)}
	d.model.Default = model
	d.env = map[string]string{
		asMimikit: "1", "HOME": dir, "PATH": os.Getenv("PATH"), "TMPDIR": os.TempDir(), "TERM": "xterm-256color",
		"GORACE":                  "halt_on_error=1 atexit_sleep_ms=0",
		"MIMIKIT_DATA_DIR":        d.dir,
		"MIMIKIT_HTTP_LISTEN":     "off",
		"MIMIKIT_LLM_BASE_URL":    d.model.URL(),
		"MIMIKIT_LLM_KEY":         llmtest.Key,
		"MIMIKIT_LLM_MODEL":       "test-model",
		"MIMIKIT_LLM_IDLE":        "30m", // a test holds a call for as long as it looks around
		"MIMIKIT_TELLER_DEBOUNCE": "50ms",
		"MIMIKIT_CHANNEL_LEASE":   "1s",
		// A post whose outcome a killed Redis left open is looked up after this.
		"MIMIKIT_OUTBOX_POST_TIMEOUT": "1s",
		"MIMIKIT_OUTBOX_LOOKUP_AFTER": "2s",
	}
	t.Cleanup(d.stopRedis)
	return d.with(settings...)
}

// with is the same deployment with other settings; "NAME" alone takes one away.
func (d *deployment) with(settings ...string) *deployment {
	env := map[string]string{}
	for k, v := range d.env {
		env[k] = v
	}
	for _, s := range settings {
		if name, value, set := strings.Cut(s, "="); set {
			env[name] = value
		} else {
			delete(env, name)
		}
	}
	return &deployment{T: d.T, dir: d.dir, model: d.model, env: env}
}

// in is the same deployment for a subtest.
func (d *deployment) in(t *testing.T) *deployment {
	sub := *d
	sub.T = t
	return &sub
}

func (d *deployment) hasRedis() bool {
	_, err := exec.LookPath("redis-server")
	return err == nil
}

// redisPID is the process of the embedded server, 0 when there is none.
func (d *deployment) redisPID() int {
	b, err := os.ReadFile(filepath.Join(d.dir, "redis.pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 2 || syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// stopRedis ends the server that a killed node left, and no other process.
func (d *deployment) stopRedis() {
	if _, err := os.Stat(filepath.Join(d.dir, "redis.sock")); err != nil {
		return
	}
	c := d.redis()
	defer func() { _ = c.Close() }()
	_ = c.ShutdownNoSave(context.Background()).Err() // mostly it is gone already
}

// pauseRedis has the embedded server answer nothing, or go on.
func pauseRedis(d *deployment, pause bool) error {
	if pause {
		return syscall.Kill(d.redisPID(), syscall.SIGSTOP)
	}
	return syscall.Kill(d.redisPID(), syscall.SIGCONT)
}

// redis speaks to the embedded server.
func (d *deployment) redis() *redis.Client {
	return redis.NewClient(&redis.Options{
		Network: "unix", Addr: filepath.Join(d.dir, "redis.sock"), MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
	})
}

func (d *deployment) command(args []string) *exec.Cmd {
	d.Helper()
	self, err := os.Executable()
	if err != nil {
		d.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	for k, v := range d.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = endWithUs()
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// A process is a mimikit that runs.
type process struct {
	*testing.T
	cmd      *exec.Cmd
	args     string
	in       io.WriteCloser
	out, err *page
	over     chan struct{} // closed when it ended
}

// start starts `mimikit args` with its input open.
func (d *deployment) start(args ...string) *process {
	d.Helper()
	cmd := d.command(args)
	p := &process{T: d.T, cmd: cmd, args: strings.Join(args, " "), out: newPage(), err: newPage()}
	cmd.Stdout, cmd.Stderr = p.out, p.err
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		d.Fatal(err)
	}
	p.begin()
	return p
}

// begin starts the process, and has it end with the test.
func (p *process) begin() {
	p.Helper()
	p.over = make(chan struct{})
	started := make(chan error)
	starter() <- func() { started <- p.cmd.Start() }
	if err := <-started; err != nil {
		p.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.over)
	}()
	p.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.over
		if p.Failed() {
			p.Logf("mimikit %s ended with %s\nout: %s\nerr: %s", p.args, p.cmd.ProcessState, tail(p.out), tail(p.err))
		}
		if strings.Contains(p.err.String(), "DATA RACE") {
			p.Errorf("mimikit %s: %s", p.args, p.err)
		}
	})
}

func tail(p *page) string {
	s := p.String()
	return s[max(0, len(s)-4000):]
}

// starter is a goroutine that starts processes and never leaves its thread: the
// kernel ties the parent-death signal to the thread that forked.
var starter = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go startOn(jobs)
	return jobs
})

func startOn(jobs <-chan func()) {
	runtime.LockOSThread()
	for job := range jobs {
		job()
	}
}

var ignoreStarter = goleak.IgnoreTopFunction("mimikit/cmd/mimikit.startOn")

// say writes lines to the input.
func (p *process) say(lines ...string) {
	p.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(p.in, l+"\n"); err != nil {
			p.Fatalf("say %.40q to mimikit %s: %v", l, p.args, err)
		}
	}
}

func (p *process) signal(s os.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.Helper()
	p.signal(syscall.SIGKILL)
	<-p.over
}

// within is the exit code, which must come in so long.
func (p *process) within(most time.Duration) int {
	p.Helper()
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-p.over:
		return p.cmd.ProcessState.ExitCode()
	case <-t.C:
		p.signal(syscall.SIGQUIT) // every goroutine tells where it stands
		<-p.over
		p.Fatalf("mimikit %s did not end within %v:\nout: %s\nerr: %s", p.args, most, p.out, p.err)
		return -1
	}
}

// ends waits for the end of a process that has nothing more to hear.
func (p *process) ends(code int) {
	p.Helper()
	_ = p.in.Close()
	if got := p.within(patience); got != code {
		p.Fatalf("mimikit %s: exit code %d, want %d\nout: %s\nerr: %s", p.args, got, code, p.out, p.err)
	}
}

// run runs a command to its end, which must be a code, and gives its outputs.
func (d *deployment) run(code int, input string, args ...string) (out, err string) {
	d.Helper()
	p := d.start(args...)
	go func() { // a process that ends early leaves some of it unread
		_, _ = io.WriteString(p.in, input)
		_ = p.in.Close()
	}()
	if got := p.within(patience); got != code {
		d.Fatalf("mimikit %s: exit code %d, want %d\nout: %s\nerr: %s", p.args, got, code, p.out, p.err)
	}
	return p.out.String(), p.err.String()
}

// once is what `chat --once` answers in a conversation.
func (d *deployment) once(talk, text string) string {
	d.Helper()
	out, _ := d.run(0, "", "chat", "--talk", talk, "--once", text)
	if strings.TrimSpace(out) == "" {
		d.Fatalf("chat --once %q printed nothing", text)
	}
	return strings.TrimSuffix(out, "\n")
}

// serve starts a node and waits until it takes part. It gives the address of its
// health endpoints, too.
func (d *deployment) serve() (p *process, url string) {
	d.Helper()
	p, url = d.serving()
	storetest.Eventually(d, "readiness", func() error {
		code, body, err := get(url + "/readyz")
		select {
		case <-p.over:
			d.Fatalf("serve ended: %s\n%s", p.cmd.ProcessState, p.err)
		default:
		}
		if err == nil && code != http.StatusOK {
			err = errors.New(body)
		}
		return err
	})
	return p, url
}

// serving is serve that does not wait.
func (d *deployment) serving() (p *process, url string) {
	d.Helper()
	addr := freeAddress(d.T)
	return d.with("MIMIKIT_HTTP_LISTEN=" + addr).start("serve"), "http://" + addr
}

var web = http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func get(url string) (code int, body string, err error) {
	resp, err := web.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// thinking waits until the model was asked so often.
func (d *deployment) thinking(calls int) {
	d.Helper()
	storetest.Eventually(d, "a call of the model", func() error {
		if n := len(d.model.Calls()); n < calls {
			return fmt.Errorf("%d calls, want %d", n, calls)
		}
		return nil
	})
}

// A record is what Redis holds of the deployment.
type record struct {
	*deployment
	client redis.UniversalClient
	keys   channel.Keys
}

// record looks into a Redis; nil is the embedded one.
func (d *deployment) record(client redis.UniversalClient) *record {
	d.Helper()
	if client == nil {
		client = d.redis()
	}
	d.Cleanup(func() { _ = client.Close() })
	return &record{d, client, channel.Keys{Prefix: cmp.Or(d.env["MIMIKIT_REDIS_PREFIX"], "mimikit"), Partitions: 16}}
}

func conversation(talk string) string {
	return chat.Conversation{Platform: "console", Workspace: "local", Place: talk}.Key()
}

// settled waits until nothing is left in the streams and nothing pending.
func (r *record) settled() {
	r.Helper()
	node, err := channel.New(channel.Options{Client: r.client, Blocking: r.client, Keys: r.keys, NodeID: "onlooker"})
	if err != nil {
		r.Fatal(err)
	}
	storetest.Eventually(r, "empty streams", func() error {
		s, err := node.Stats(context.Background())
		if err != nil {
			return err
		}
		for _, c := range s.Channels {
			if c.Entries != 0 || c.Pending != 0 {
				return fmt.Errorf("%s has %d entries, %d pending", c.Channel, c.Entries, c.Pending)
			}
		}
		if s.Dead != 0 {
			return fmt.Errorf("%d dead letters", s.Dead)
		}
		return nil
	})
}

// posted are the texts that were posted in a conversation, and how often each
// input was answered.
func (r *record) posted(talk string) (texts []string, answered map[string]int) {
	r.Helper()
	entries, err := r.client.XRange(context.Background(), r.keys.Feed(conversation(talk)), "-", "+").Result()
	if err != nil {
		r.Fatal(err)
	}
	answered = map[string]int{}
	for _, e := range entries {
		it := decoded[feed.Item](r.T, e.Values["item"].(string))
		texts = append(texts, it.Text)
		for _, id := range it.InputIDs {
			answered[id]++
		}
	}
	return texts, answered
}

// history is what a conversation remembers: "role: text", joined by "|".
func (r *record) history(talk string) string {
	r.Helper()
	lines, err := history.New(r.client, r.keys.History, nil).Window(context.Background(), conversation(talk), history.Limits{})
	if err != nil {
		r.Fatal(err)
	}
	var all []string
	for _, l := range lines {
		all = append(all, fmt.Sprintf("%s: %s", l.Role, l.Text))
	}
	return strings.Join(all, "|")
}
