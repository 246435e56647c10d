package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// completes fails unless a shell makes of each line what it should when Tab is pressed at
// its end: run gives what that shell, by its path, makes of them in a folder that has the
// script.
func completes(t *testing.T, shell string, run func(dir, shell string, lines []string) []string) {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skip("there is no " + shell + " here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script, _, _ := called("completion", shell)
	for name, text := range map[string]string{"script": script, "a file.yaml": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(self, filepath.Join(dir, "mimikit")); err != nil {
		t.Fatal(err)
	}
	lines := [][2]string{
		{"mimikit complet", "mimikit completion"},
		{"mimikit tasks --status ru", "mimikit tasks --status running"},
		{"mimikit tasks --status=ru", "mimikit tasks --status=running"},
		{"mimikit dead rep", "mimikit dead replay"},
		{"mimikit --config a", `mimikit --config a\ file.yaml`},
		{"mimikit nonsense x", "mimikit nonsense x"},
	}
	typed := make([]string, len(lines))
	for i, l := range lines {
		typed[i] = l[0]
	}
	got := run(dir, path, typed)
	if len(got) != len(lines) {
		t.Fatalf("%d lines came of %d: %q", len(got), len(lines), got)
	}
	for i, l := range lines {
		if strings.TrimSpace(got[i]) != l[1] {
			t.Errorf("%q and Tab give %q, want %q", l[0], got[i], l[1])
		}
	}
}

// inShell runs a shell in a folder where mimikit is this program.
func inShell(t *testing.T, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{asMimikit + "=1", "HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH"), "TERM=dumb"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// In zsh the keys are pressed at a terminal. What is on the line then is kept in a file.
func TestCompletionInZsh(t *testing.T) {
	t.Parallel()
	completes(t, "zsh", func(dir, zsh string, lines []string) []string {
		for name, text := range map[string]string{
			"begin": `autoload -Uz compinit && compinit -D -u
source ./script
show() { print -r -- "$BUFFER" >> shown; BUFFER= }
zle -N show
bindkey '^Xp' show
`,
			"press": `zmodload zsh/zpty
zpty z "$1 -f -i"
shift
zpty -w z "source ./begin; echo re''ady"
zpty -r z out '*ready*'
for line in "$@"; do zpty -w -n z "$line"$'\t\C-xp'; done
zpty -w z "exit"
while zpty -r z out; do :; done
`,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		said := inShell(t, dir, append([]string{zsh, "-f", "./press", zsh}, lines...)...)
		shown, err := os.ReadFile(filepath.Join(dir, "shown"))
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return strings.Split(strings.TrimSuffix(string(shown), "\n"), "\n")
	})
}

// fish says what it would offer; with one thing to choose from, that is put in.
func TestCompletionInFish(t *testing.T) {
	t.Parallel()
	completes(t, "fish", func(dir, fish string, lines []string) (out []string) {
		for _, line := range lines {
			var offered []string
			for l := range strings.Lines(inShell(t, dir, fish, "--no-config", "-c", "source ./script; complete -C $argv[1]", line)) {
				value, _, _ := strings.Cut(strings.TrimSpace(l), "\t")
				offered = append(offered, strings.ReplaceAll(value, " ", `\ `))
			}
			before, last := "", line
			if i := strings.LastIndexByte(line, ' '); i >= 0 {
				before, last = line[:i+1], line[i+1:]
			}
			switch len(offered) {
			case 0:
			case 1:
				last = offered[0]
			default:
				t.Errorf("%q: fish is offered %q", line, offered)
			}
			out = append(out, before+last)
		}
		return out
	})
}
