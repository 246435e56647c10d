package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mimikit/core/sandbox"
)

// ErrNoAgent says that the agent cannot work here; the error that wraps it says why
// and what mends it.
var ErrNoAgent = errors.New("no agent is to be had")

// agentKey is the environment variable that Codex gets the token of its relay in. Its
// commands are not given it.
const agentKey = "MIMIKIT_EXPERT_KEY"

const openAI = "https://api.openai.com/v1"

// agentHome is where the agent finds its home within walls.
const agentHome = "/agent"

// An agentProgram is what Available found.
type agentProgram struct {
	path    string   // of the program itself
	show    []string // folders of the host that it needs to see
	version string
	inner   bool // the walls that the agent has itself work here
}

// Available tells why the agent cannot work here, and what mends it; nil if it can.
// It tries for real, and remembers only success. Its errors wrap [ErrNoAgent],
// unless ctx ended.
func (e *Expert) Available(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found != nil {
		return nil
	}
	found, err := e.look(ctx)
	switch {
	case err == nil:
		e.found = found
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", ErrNoAgent, err)
}

// Describe says what Available has found; "" before it has.
func (e *Expert) Describe() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found == nil {
		return ""
	}
	text := e.found.version + " at " + e.found.path
	if e.o.Walls == nil {
		return text + ", with no walls but its own: its commands can read what this service can read"
	}
	if e.o.Agent == Codex && !e.found.inner {
		return text + ", its commands in walls that are ours alone"
	}
	return text
}

func (e *Expert) look(ctx context.Context) (*agentProgram, error) {
	path, err := exec.LookPath(e.o.Command)
	if err != nil {
		mend := "install it, or set worker.expert.command to its path"
		if e.o.Agent == Codex {
			mend = "install it with 'npm install -g @openai/codex', or set worker.expert.command to its path"
		}
		return nil, fmt.Errorf("there is no program %s; %s", e.o.Command, mend)
	}
	if path, err = filepath.Abs(path); err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, fmt.Errorf("look at the program %s: %w", e.o.Command, err)
	}
	if e.o.Agent == Codex {
		if _, err := e.o.Endpoint.address(); err != nil {
			return nil, err
		}
	}
	p := &agentProgram{path: path, show: []string{filepath.Dir(path)}, version: filepath.Base(e.o.Command)}
	if e.o.Agent == Codex {
		if native := nativeCodex(path); native != "" {
			// The script that npm installs only starts this, and needs Node to do so.
			p.path, p.show = native, []string{filepath.Dir(filepath.Dir(native))}
		}
	}
	if e.o.Walls != nil {
		if err := e.o.Walls.try(ctx); err != nil {
			return nil, err
		}
	}
	if e.o.Agent == Plain {
		return p, nil
	}
	code, said := e.probe(ctx, p, "--version")
	if code != 0 {
		return nil, fmt.Errorf("%s --version ended with %d: %s", e.o.Command, code, lastLine(said))
	}
	p.version = brief(lastLine(said), 80)
	var why string
	for _, form := range [][]string{{"sandbox"}, {"sandbox", "linux"}} { // newer and older versions
		code, why = e.probe(ctx, p, append(form, "-c", `sandbox_mode="workspace-write"`, "--", "/bin/sh", "-c", "exit 42")...)
		if p.inner = code == 42; p.inner {
			return p, nil
		}
	}
	if e.o.Walls != nil && e.o.Network {
		return p, nil // ours are enough where its commands may reach the network anyway
	}
	mend := "allow user namespaces within user namespaces (sysctl user.max_user_namespaces; in a container --security-opt seccomp=unconfined)"
	switch {
	case e.o.Walls == nil && below(e.o.Homes, os.TempDir()):
		mend = "it needs a home that is not below a temporary folder; set dataDir"
	case e.o.Walls != nil:
		mend += ", or let its commands reach the network with worker.expert.network: true"
	}
	return nil, fmt.Errorf("the walls that %s puts around its commands do not work here: %s; %s", e.o.Command, lastLine(why), mend)
}

// probe runs the agent with arguments and gives its exit code, -1 for none, and what
// it said.
func (e *Expert) probe(ctx context.Context, found *agentProgram, args ...string) (int, string) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	home, release, err := e.home("probe")
	if err != nil {
		return -1, err.Error()
	}
	defer release()
	p := e.placed(found, home, home, sandbox.Program{Args: args, Env: e.environment(home, nil)})
	proc, err := sandbox.Start(ctx, p)
	if err != nil {
		return -1, err.Error()
	}
	_ = proc.Stdin.Close()
	out, _ := io.ReadAll(io.LimitReader(proc.Stdout, 64<<10))
	err = proc.Wait()
	said := string(out)
	if err != nil || strings.TrimSpace(said) == "" {
		said += "\n" + proc.Stderr()
	}
	return exitCode(err), said
}

// nativeCodex finds the program that the script of the npm package would start; ""
// when path is no such script.
func nativeCodex(path string) string {
	if filepath.Ext(path) != ".js" {
		return ""
	}
	pkg := filepath.Dir(filepath.Dir(path)) // …/node_modules/@openai/codex
	for _, pattern := range []string{
		filepath.Join(filepath.Dir(pkg), "codex-*", "vendor", "*", "bin", "codex"),
		filepath.Join(pkg, "node_modules", "@openai", "codex-*", "vendor", "*", "bin", "codex"),
		filepath.Join(pkg, "vendor", "*", "bin", "codex"),
	} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) == 1 {
			return found[0]
		}
	}
	return ""
}

// program is the agent's command line, and what it is given as input. via is how Codex
// reaches its model.
func (e *Expert) program(s *agentState, via *relay, home, workspace, text string) (sandbox.Program, string) {
	e.mu.Lock()
	found := e.found
	e.mu.Unlock()
	p := sandbox.Program{Env: e.environment(home, via)}
	if e.o.Agent == Codex {
		p.Args = append([]string{"exec", "--json", "--skip-git-repo-check"}, e.codexSettings(found, via)...)
		p.Args = append(p.Args, e.o.Args...)
		if s.Thread != "" {
			p.Args = append(p.Args, "resume", s.Thread)
		}
		p.Args = append(p.Args, "-") // the prompt comes as input: a list of processes shows arguments
		return e.placed(found, home, workspace, p), text
	}
	for _, a := range e.o.Args {
		if strings.Contains(a, "{prompt}") {
			a, text = strings.ReplaceAll(a, "{prompt}", text), ""
		}
		p.Args = append(p.Args, a)
	}
	return e.placed(found, home, workspace, p), text
}

// placed puts a program into the walls, if there are any.
func (e *Expert) placed(found *agentProgram, home, workspace string, p sandbox.Program) sandbox.Program {
	p.Path, p.Dir = found.path, workspace
	if e.o.Walls != nil {
		p = e.o.Walls.around(p, home, found.show)
	}
	return p
}

// environment is all that the agent is given of one.
func (e *Expert) environment(home string, via *relay) map[string]string {
	if e.o.Walls != nil {
		home = agentHome
	}
	env := map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb", "USER": "worker", "LOGNAME": "worker", "NO_COLOR": "1",
	}
	maps.Copy(env, e.o.Env)
	env["HOME"] = home // whatever was allowed: conversations must not meet in one
	if e.o.Agent == Codex {
		env["CODEX_HOME"] = home
		// The relay is on this machine, where no proxy of its own leads.
		direct := strings.TrimPrefix(cmp.Or(env["NO_PROXY"], env["no_proxy"])+",127.0.0.1", ",")
		env["NO_PROXY"], env["no_proxy"] = direct, direct
		if via != nil {
			env[agentKey] = via.Token
		}
	}
	return env
}

// codexSettings are Codex's settings, told by arguments, since what stands in its
// home it may have written itself. None is a secret.
func (e *Expert) codexSettings(found *agentProgram, via *relay) []string {
	provider := "{name=\"mimikit\",wire_api=\"responses\",supports_websockets=false,base_url=" + quoted(via.Base) + ",env_key=" + quoted(agentKey) + "}"
	all := []string{
		`model_provider="mimikit"`, "model_providers.mimikit=" + provider,
		`approval_policy="never"`,
		// What it is given is meant for its commands too, but for this.
		`shell_environment_policy={inherit="all",ignore_default_excludes=true,exclude=[` + quoted(agentKey) + `]}`,
		`features.shell_snapshot=false`, // it would write the environment into a file
		`features.apps=false`, `features.plugins=false`, `features.remote_plugin=false`, `features.hooks=false`,
		`web_search="disabled"`, `analytics.enabled=false`, `feedback.enabled=false`, `check_for_update_on_startup=false`, `history.persistence="none"`,
	}
	if model := e.o.Endpoint.Model; model != "" {
		all = append(all, "model="+quoted(model))
	}
	switch {
	case !found.inner:
		all = append(all, `sandbox_mode="danger-full-access"`) // within ours
	default:
		all = append(all, `sandbox_mode="workspace-write"`, fmt.Sprintf("sandbox_workspace_write.network_access=%v", e.o.Network))
		if e.o.Walls == nil { // else all conversations would share these
			all = append(all, "sandbox_workspace_write.exclude_slash_tmp=true", "sandbox_workspace_write.exclude_tmpdir_env_var=true")
		}
	}
	var args []string
	for _, s := range all {
		args = append(args, "-c", s)
	}
	return args
}

// quoted is a text in TOML, whose basic strings are those of JSON.
func quoted(s string) string {
	b, _ := json.Marshal(s) // a string cannot fail
	return string(b)
}
