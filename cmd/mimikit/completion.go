package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"mimikit/core/admin"
)

// completionCmd is `mimikit completion`.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Your shell: ${enum}."`
}

// Help tells more.
func (*completionCmd) Help() string {
	return `Prints a script that has your shell complete commands, flags and what they take, and the ids of tasks, triggers, questions and dead letters of the node that runs.

  bash   in ~/.bashrc:  source <(mimikit completion bash)
  zsh    in ~/.zshrc, after compinit:  source <(mimikit completion zsh)
  fish   mimikit completion fish > ~/.config/fish/completions/mimikit.fish`
}

// Run prints the script.
func (c *completionCmd) Run(std *streams) error {
	_, err := io.WriteString(std.out, completionScripts[c.Shell])
	return err
}

// completeName is the word by which the scripts ask what may come next. It is no
// command that people give.
const completeName = "__complete"

// The scripts ask the program, so that they need not know what it can do. A line of the
// answer is a value and, after a tab, what it means; ":files" asks for names of files.
var completionScripts = map[string]string{
	"bash": `_mimikit() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
            compopt -o filenames 2>/dev/null
            return
        fi
        COMPREPLY+=("${line%%$'\t'*}")
    done < <("$1" ` + completeName + ` "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _mimikit mimikit
`,
	"zsh": `#compdef mimikit
_mimikit() {
    local line
    local -a lines values
    lines=("${(@f)$("${words[1]}" ` + completeName + ` "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${lines[@]}"; do
        [[ -z $line ]] && continue
        if [[ $line == :files ]]; then _files; return; fi
        values+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    (( ${#values} )) && _describe mimikit values
}
if [[ ${funcstack[1]} == _mimikit ]]; then _mimikit "$@"; else compdef _mimikit mimikit; fi
`,
	"fish": `function __mimikit_complete
    set -l typed (commandline -opc) (commandline -ct)
    set -l lines ($typed[1] ` + completeName + ` $typed[2..-1] 2>/dev/null)
    if test "$lines" = :files
        __fish_complete_path (commandline -ct)
        return
    end
    string join \n -- $lines
end
complete -c mimikit -f -a '(__mimikit_complete)'
`,
}

// A choice is one thing that may come next.
type choice struct{ value, means string }

// completing prints what may come next, where words are those after the program's name
// and the last of them is being typed. Whatever goes wrong, a shell must not be
// disturbed by it: then there is nothing to choose from.
func completing(ctx context.Context, parser *kong.Kong, words, environ []string, w io.Writer) {
	if len(words) == 0 {
		words = []string{""}
	}
	t := readTyped(parser.Model.Node, words)
	for _, c := range t.choices(ctx, environ) {
		if !strings.HasPrefix(c.value, t.now) && c.value != filesChoice {
			continue
		}
		if c.means == "" || c.value == filesChoice {
			_, _ = fmt.Fprintln(w, t.before+c.value) // whoever asked is gone
			continue
		}
		_, _ = fmt.Fprintf(w, "%s%s\t%s\n", t.before, c.value, oneLine(c.means))
	}
}

const filesChoice = ":files"

func oneLine(s string) string { return strings.Join(strings.Fields(admin.Clean(s)), " ") }

// A typed is a command line up to the cursor, taken apart.
type typed struct {
	node   *kong.Node
	args   []string   // that follow the command
	flag   *kong.Flag // whose value is typed; nil where a word is
	now    string     // what of the word is typed
	before string     // what stands before it in the same word
	config string     // the file named with --config
}

func readTyped(root *kong.Node, words []string) typed {
	t := typed{node: root}
	last := len(words) - 1
	for i := 0; i < last; i++ {
		word := words[i]
		switch {
		case word == "=": // bash takes --status=running apart
		case strings.HasPrefix(word, "-") && word != "-":
			name, value, joined := strings.Cut(word, "=")
			f := t.find(name)
			if f == nil || f.IsBool() {
				continue
			}
			if !joined {
				if i+1 < last && words[i+1] == "=" {
					i++
				}
				if i+1 >= last {
					t.flag = f
					if words[last] == "=" {
						t.now = ""
						return t
					}
					t.now = words[last]
					return t
				}
				i++
				value = words[i]
			}
			if f.Name == "config" {
				t.config = value
			}
		default:
			if child := childOf(t.node, word); child != nil && len(t.args) == 0 {
				t.node = child
				continue
			}
			t.args = append(t.args, word)
		}
	}
	t.now = words[last]
	if name, value, joined := strings.Cut(t.now, "="); joined && strings.HasPrefix(name, "--") {
		if f := t.find(name); f != nil && !f.IsBool() {
			t.flag, t.now, t.before = f, value, name+"="
		}
	}
	return t
}

func childOf(n *kong.Node, word string) *kong.Node {
	for _, c := range n.Children {
		if c.Name == word && !c.Hidden {
			return c
		}
	}
	return nil
}

// nodes are the command and those above it, and the one that is meant without a name.
func (t typed) nodes() []*kong.Node {
	var list []*kong.Node
	for n := t.node; n != nil; n = n.Parent {
		list = append(list, n)
	}
	if t.node.Parent != nil && t.node.DefaultCmd != nil {
		list = append(list, t.node.DefaultCmd)
	}
	return list
}

func (t typed) find(name string) *kong.Flag {
	for _, n := range t.nodes() {
		for _, f := range n.Flags {
			if "--"+f.Name == name || f.Short != 0 && "-"+string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}

func (t typed) choices(ctx context.Context, environ []string) []choice {
	switch {
	case t.flag != nil:
		return t.values()
	case strings.HasPrefix(t.now, "-"):
		return t.flags()
	}
	var list []choice
	if len(t.args) == 0 {
		for _, c := range t.node.Children {
			if !c.Hidden {
				list = append(list, choice{c.Name, c.Help})
			}
		}
	}
	return append(list, t.words(ctx, environ)...)
}

func (t typed) flags() []choice {
	var list []choice
	for _, n := range t.nodes() {
		for _, f := range n.Flags {
			if !f.Hidden {
				list = append(list, choice{"--" + f.Name, f.Help})
			}
		}
	}
	return list
}

// values are what the flag takes.
func (t typed) values() []choice {
	switch {
	case t.flag.Enum != "":
		return plainChoices(t.flag.EnumSlice()...)
	case t.flag.Name == "config", t.flag.PlaceHolder == "FILE", t.flag.PlaceHolder == "DIR":
		return []choice{{value: filesChoice}}
	case t.node.Name == "tasks" && t.flag.Name == "status":
		return plainChoices(statusChoices...)
	}
	return nil
}

func plainChoices(words ...string) []choice {
	var list []choice
	for _, w := range words {
		if w != "" {
			list = append(list, choice{value: w})
		}
	}
	return list
}

var statusChoices = []string{"active", "deferred", "pending", "running", "waiting", "succeeded", "failed", "canceled", "over"}

// words are what may follow the command at the cursor.
func (t typed) words(ctx context.Context, environ []string) []choice {
	n := len(t.args)
	name := strings.TrimPrefix(t.node.FullPath(), "mimikit ")
	first := func(at int, words ...string) []choice {
		if n != at {
			return nil
		}
		return plainChoices(words...)
	}
	ids := func(words ...string) []choice { return t.ids(ctx, environ, words...) }
	switch name {
	case "task", "retry":
		if n == 0 {
			return ids("tasks", "all")
		}
		if name == "task" {
			return first(1, "output", "prompt", "progress")
		}
	case "cancel":
		return append(first(0, "all", "mine"), ids("tasks", "all", "active")...)
	case "tasks":
		return append(first(0, "mine", "all"), plainChoices(statusChoices...)...)
	case "triggers":
		return first(0, "mine", "all")
	case "trigger":
		acts := first(0, "show", "pause", "resume", "run", "remove")
		if n == 0 || n == 1 && slices.Contains([]string{"show", "pause", "resume", "run", "remove"}, t.args[0]) {
			return append(acts, ids("triggers", "all")...)
		}
	case "answer":
		if n == 0 {
			return ids("questions", "all")
		}
	case "dead", "dead list":
		return first(0, "user-input", "worker-result", "supervisor-event", "teller-digest", "thinker-decision", "teller-reply")
	case "dead replay", "dead drop":
		return append(first(0, "all"), ids("dead", "list", "200")...)
	case "usage":
		if n == 1 && t.args[0] == "task" {
			return ids("tasks", "all")
		}
	case "budget":
		return append(first(0, "user", "place", "workspace"), first(2, "tokens", "money", "off", "default")...)
	case "memory":
		return first(0, "list", "forget")
	case "feedback":
		return plainChoices("review", "captured", "thinker_error", "teller_error", "worker_error", "worker_retry", "high_latency", "high_usage", "low", "medium", "high")
	case "audit":
		return plainChoices("by", "since", "refused", "slack", "discord", "console", "cli", "page", "cancel", "retry", "dead", "trigger", "pause", "resume", "budget", "memory", "answer")
	}
	if n < len(t.node.Positional) && t.node.Positional[n].Enum != "" {
		return plainChoices(t.node.Positional[n].EnumSlice()...)
	}
	return nil
}

// completeIn bounds how long a shell waits for ids.
const completeIn = 2 * time.Second

// ids lists what a command lists, by its ids.
func (t typed) ids(ctx context.Context, environ []string, words ...string) []choice {
	ctx, cancel := context.WithTimeout(ctx, completeIn)
	defer cancel()
	var list []choice
	err := withCommands(ctx, &settings{file: t.config, environ: environ}, func(_ *App, set *admin.Set, who admin.Caller) error {
		who.PageSize = 100
		a, err := set.Run(ctx, who, words)
		if err != nil {
			return err
		}
		switch found := a.Data.(type) {
		case []admin.TaskView:
			for _, x := range found {
				list = append(list, choice{x.ID, x.Status + ": " + x.Title})
			}
		case []admin.TriggerView:
			for _, x := range found {
				list = append(list, choice{x.ID, x.When + ": " + x.Title})
			}
		case *[]admin.QuestionView:
			for _, x := range *found {
				list = append(list, choice{x.ID, x.Question})
			}
		case []admin.Dead:
			for _, x := range found {
				list = append(list, choice{x.ID, x.From + ": " + x.Reason})
			}
		default:
			return errors.New("it lists nothing")
		}
		return nil
	})
	if err != nil {
		return nil // a shell has nowhere to say it
	}
	return list
}
