package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// grammar is the program's own.
func grammar(t *testing.T) *kong.Kong {
	t.Helper()
	p, err := newParser(new(cli), streams{out: io.Discard, err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// told is what a call prints and its exit code.
func called(args ...string) (out, stderr string, code int) {
	var o, e bytes.Buffer
	code = run(args, []string{"HOME=" + os.TempDir()}, streams{out: &o, err: &e})
	return o.String(), e.String(), code
}

// Every command's help is whole: what it does, how it is called, arguments and flags with
// their defaults, examples that hold, exit codes, environment, and where to read on; and
// it fits into 80 columns.
func TestManual(t *testing.T) {
	t.Parallel()
	p := grammar(t)
	paths := map[string]bool{"": true}
	for _, n := range p.Model.Leaves(true) {
		paths[strings.TrimPrefix(n.FullPath(), "mimikit ")] = true
	}
	for path := range manual {
		if !paths[path] {
			t.Errorf("the manual tells of %q, which is no command", path)
		}
	}
	for path := range paths {
		page, known := manual[path]
		if !known {
			t.Errorf("the manual says nothing of %q", path)
			continue
		}
		for name := range strings.SplitSeq(page.see, ", ") {
			if !paths[name] || name == path {
				t.Errorf("%q: see also %q, which is no other command", path, name)
			}
		}
		out, stderr, code := called(append(strings.Fields(path), "--help")...)
		if code != 0 || stderr != "" {
			t.Errorf("help of %q: exit code %d, %s", path, code, stderr)
		}
		has(t, out, strings.TrimSpace("Usage: mimikit "+path), "\nFlags:\n", "Examples:\n", "\nExit codes:\n  0 ", "\n  1 ", "\n  2 ", "\nEnvironment:\n", "MIMIKIT_CONFIG", "\nSee also:\n  mimikit")
		for line := range strings.Lines(out) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 && !strings.Contains(line, "https://") {
				t.Errorf("help of %q has a line of %d characters: %s", path, n, line)
			}
			if strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
				t.Errorf("help of %q has a line that ends in spaces: %q", path, line)
			}
		}
		examples := 0
		for line := range strings.Lines(out) {
			example, ok := strings.CutPrefix(strings.TrimSpace(line), "mimikit")
			if !ok || !strings.HasPrefix(line, "  ") || strings.Contains(line, ", mimikit ") || strings.HasSuffix(strings.TrimSpace(line), ",") || path != "" && !strings.Contains(out[:strings.Index(out, "See also:")], strings.TrimSpace(line)) {
				continue
			}
			examples++
			if err := parses(t, example); err != nil {
				t.Errorf("help of %q: the example %q does not hold: %v", path, strings.TrimSpace(line), err)
			}
		}
		if examples == 0 {
			t.Errorf("help of %q has no example that could be tried", path)
		}
	}
	for _, n := range p.Model.Leaves(true) {
		for _, f := range n.Flags {
			if f.Help == "" {
				t.Errorf("%s: --%s says nothing of itself", n.FullPath(), f.Name)
			}
		}
		for _, a := range n.Positional {
			if a.Help == "" {
				t.Errorf("%s: <%s> says nothing of itself", n.FullPath(), a.Name)
			}
		}
		if n.Help == "" || !strings.HasSuffix(n.Help, ".") {
			t.Errorf("%s says of itself %q", n.FullPath(), n.Help)
		}
	}
}

// parses tries an example without carrying it out.
func parses(t *testing.T, example string) error {
	t.Helper()
	for _, end := range []string{"   ", " | ", " && ", " > "} {
		example, _, _ = strings.Cut(example, end)
	}
	var args []string
	quoted := false
	word := ""
	for _, r := range strings.TrimSpace(example) + " " {
		switch {
		case r == '\'' || r == '"':
			quoted = !quoted
			word += "\x00"
		case r == ' ' && !quoted:
			if word != "" {
				args = append(args, strings.ReplaceAll(word, "\x00", ""))
			}
			word = ""
		default:
			word += string(r)
		}
	}
	if slices.Contains(args, "--help") {
		args = slices.DeleteFunc(args, func(a string) bool { return a == "--help" })
		if _, known := manual[strings.Join(args, " ")]; known {
			return nil
		}
	}
	_, err := grammar(t).Parse(args)
	return err
}

// A shell is offered commands, flags, what they take, and nothing where nothing can
// come; an odd line, settings that do not hold or a node that is away disturb nobody.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"":                        {"chat", "serve", "tasks", "pause", "completion"},
		"ta":                      {"task", "tasks"},
		"dead ":                   {"list", "replay", "drop", "user-input"},
		"dead re":                 {"replay"},
		"config ":                 {"check", "print", "keys"},
		"tasks --st":              {"--status"},
		"tasks --status ru":       {"running"},
		"tasks --status=ru":       {"--status=running"},
		"tasks --status = ru":     {"running"},
		"tasks -s fa":             {"failed"},
		"tasks m":                 {"mine"},
		"task x o":                {"output"},
		"trigger p":               {"pause"},
		"completion ":             {"bash", "zsh", "fish"},
		"--config ":               {":files"},
		"-c x.yaml sta":           {"status"},
		"dead drop a":             {"all"},
		"budget user x ":          {"tokens", "money", "off", "default"},
		"usage m":                 {"model"},
		"nonsense ":               nil,
		"tasks --limit ":          nil,
		"answer q1 ":              nil,
		"--config /nowhere task ": nil,
		"task t":                  nil, // no node runs
	} {
		words := append([]string{completeName}, strings.Split(line, " ")...)
		out, stderr, code := called(words...)
		if code != 0 || stderr != "" {
			t.Errorf("%q: exit code %d, %s", line, code, stderr)
		}
		var got []string
		for l := range strings.Lines(out) {
			value, _, _ := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
			got = append(got, value)
		}
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%q offers %q, want %q among them", line, got, w)
			}
		}
		if want == nil && len(got) > 0 {
			t.Errorf("%q offers %q, want nothing", line, got)
		}
		if slices.Contains(got, completeName) || slices.Contains(got, "chaos-node") {
			t.Errorf("%q offers what is hidden: %q", line, got)
		}
	}
	for shell, mark := range map[string]string{"bash": "complete -F", "zsh": "#compdef", "fish": "complete -c mimikit"} {
		out, _, code := called("completion", shell)
		if code != 0 || !strings.Contains(out, mark) || !strings.Contains(out, completeName) {
			t.Errorf("the script for %s: exit code %d, %s", shell, code, out)
		}
	}
	_, stderr, code := called("completion", "tcsh")
	if code != 2 || !strings.Contains(stderr, "bash") {
		t.Errorf("another shell: exit code %d, %q", code, stderr)
	}
}

// The script for bash asks the program and gives the shell what it offers.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script, _, _ := called("completion", "bash")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a file.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		`mimikit ta`:                       "tasks task",
		`mimikit tasks --status ru`:        "running",
		`mimikit tasks --status = ru`:      "running",
		`mimikit dead r`:                   "replay",
		`mimikit nonsense ""`:              "",
		`mimikit --config "` + dir + `/a"`: dir + "/a file.yaml",
	} {
		cmd := exec.Command(bash, "--norc", "-c", script+"\nCOMP_WORDS=("+line+")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_mimikit \"$0\"\necho \"${COMPREPLY[*]}\"", self)
		cmd.Env = []string{asMimikit + "=1", "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: bash is offered %q, want %q; %v", line, out, want, err)
		}
	}
}

// Who calls it wrongly is told what is wrong, and where to read on, on standard error.
func TestCalledWrongly(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"task":               "<id>",
		"tasks --limit x":    "--limit",
		"cancel":             "<id>",
		"status --jsn":       "--jsn",
		"dead replay":        "<id>",
		"completion":         "<shell>",
		"usage nonsense":     "user",
		"config nonsense":    "nonsense",
		"tasks --all --mine": "can't be used together",
	} {
		out, stderr, code := called(strings.Fields(args)...)
		if code != 2 || out != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "--help") {
			t.Errorf("%q: exit code %d, out %q, err %q, want %q in it", args, code, out, stderr, want)
		}
		for line := range strings.Lines(stderr) {
			if len(line) > 200 {
				t.Errorf("%q: %s", args, fmt.Sprint(line))
			}
		}
	}
}

// The README's tables name every command, in words that begin a quoted piece.
func TestReadmeNamesEveryCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(text), "\n## Commands\n")
	tables, _, _ = strings.Cut(tables, "\n## ")
	for _, n := range grammar(t).Model.Leaves(true) {
		path := strings.TrimPrefix(n.FullPath(), "mimikit ")
		name, rest, _ := strings.Cut(path, " ")
		word := regexp.MustCompile("`(mimikit )?" + name + `\b[^` + "`]*" + rest)
		measured := name == "bench" || name == "chaos" // named by their defaults
		if !measured && !word.MatchString(tables) {
			t.Errorf("the README does not name %q", path)
		}
	}
}
