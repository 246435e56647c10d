package prompts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// views are many combinations of the fields that a file may tell apart: none,
// all, each one alone, all but each one, and some by chance.
func views() []View {
	names := fieldNames()
	without := func(has func(name string) bool) []View {
		var out []View
		for _, m := range []Mode{Full, None, ""} {
			v := viewOf(func(name string) string {
				if !has(name) {
					return ""
				}
				return " <" + name + "> "
			})
			if v.Final, v.Mode = has("Final"), m; !has("Bot") {
				v.Bot = "Mimi"
			}
			out = append(out, v)
		}
		return out
	}
	all := slices.Concat(without(func(string) bool { return true }), without(func(string) bool { return false }))
	for _, one := range names {
		all = append(all, without(func(name string) bool { return name == one })...)
		all = append(all, without(func(name string) bool { return name != one })...)
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		some := map[string]bool{}
		for _, name := range names {
			some[name] = chance.IntN(2) == 0
		}
		all = append(all, without(func(name string) bool { return some[name] })...)
	}
	return all
}

// agree fails where a file's program and text/template differ.
func agree(t *testing.T, set *Set, role, file string) {
	t.Helper()
	for _, v := range views() {
		want, err := set.execute(place{role, file}, v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := set.render(place{role, file}, &v); err != nil || got != want {
			t.Fatalf("%s/%s of %+v: got %q, %v; want %q", role, file, v, got, err, want)
		}
	}
}

// A field that is missing in the table would be refused in every file.
func TestEveryFieldIsKnown(t *testing.T) {
	t.Parallel()
	var want []string
	for f := range reflect.TypeFor[View]().Fields() {
		want = append(want, f.Name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, fieldNames()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	v := reflect.ValueOf(viewOf(func(name string) string { return name }))
	for _, name := range want {
		if f := v.FieldByName(name); f.IsZero() || f.Kind() == reflect.String && name != "Bot" && name != "Mode" && f.String() != name {
			t.Errorf("a View with everything has %v as %s", f, name)
		}
	}
}

func TestProgramsSayWhatTemplatesSay(t *testing.T) {
	t.Parallel()
	set, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	for role, names := range files {
		for _, file := range names {
			p := set.programs[place{role, file}]
			if p == nil {
				t.Fatalf("%s/%s has no program; it renders ten times as slowly", role, file)
			}
			if stable := !strings.HasSuffix(file, "injection"); p.stable != stable {
				t.Errorf("%s/%s: stable is %v, want %v", role, file, p.stable, stable)
			}
			agree(t, set, role, file)
		}
	}
}

// Whatever an override does, it is rendered as text/template does; and a system
// part is kept from turn to turn only if it may be.
func TestOverridesAsPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text               string
		translated, stable bool
	}{
		"words":                 {"# Hi\n", true, true},
		"nothing":               {"", true, true},
		"a comment":             {"a {{/* b */}} c", true, true},
		"trimmed":               {"a \n{{- if .Final -}} \n b {{else}} c {{- end}} d", true, true},
		"else if, else with":    {`{{if .Final}}f{{else if eq .Mode "full"}}m{{else}}n{{end}} {{with .Bot}}{{.}}{{else with .Actions}}{{.}}{{end}}`, true, true},
		"a field in with":       {"{{with .Actions}}{{if .}}x{{end}}{{with .}}{{.}}{{end}}{{end}}", true, true},
		"other files":           {`{{template "teller/voice" .}} {{template "teller/system" .}}`, true, true},
		"its own files":         {`{{define "x"}}({{.Bot}}){{end}}{{template "x" .}}`, true, true},
		"inputs among rules":    {"{{.Inputs}}", true, false},
		"tasks as a condition":  {"{{if .Tasks}}There are tasks.{{end}}", true, false},
		"decision compared":     {`{{if ne .Decision "<d>"}}other{{end}}`, true, false},
		"tasks of another file": {`{{template "thinker/injection" .}}`, true, false},

		"everything":            {"{{.}}", false, false},
		"a flag shown":          {"{{.Final}}", false, false},
		"a flag with":           {"{{with .Final}}{{.}}{{end}}", false, false},
		"a function":            {"{{len .Inputs}} {{printf \"%q\" .Tasks}}", false, false},
		"a pipe":                {"{{.Inputs | html}}", false, false},
		"the whole by its name": {"{{with .Bot}}{{$.Inputs}}{{end}}", false, false},
		"a variable":            {"{{$x := .Inputs}}{{$x}}", false, false},
		"and, or, not":          {"{{if and .Tasks (not .Final)}}x{{end}}{{if or .Inputs .Tasks}}y{{end}}", false, false},
		"a text":                {`{{"x"}}{{define "x"}}{{.}}{{end}}{{template "x" .Inputs}}`, false, false},
		"a template of nothing": {`{{define "x"}}x{{end}}{{template "x"}}`, false, false},
		"a block":               {`{{block "x" .Inputs}}({{.}}){{end}}`, false, false},
		"compared with itself":  {`{{if eq .Mode .Mode}}x{{end}}{{if lt .Bot "N"}}y{{end}}{{if eq .Bot "a" "Mimi"}}z{{end}}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "agents/thinker"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "agents/thinker/system.md"), []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			set, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			p := set.programs[place{"thinker", "system"}]
			if (p != nil) != c.translated || p != nil && p.stable != c.stable {
				t.Errorf("program %+v; want one: %v, stable: %v", p, c.translated, c.stable)
			}
			agree(t, set, "thinker", "system")
			a := agents["thinker"]
			for _, v := range views() {
				want, _ := set.execute(place{"thinker", "system"}, v)
				if got, err := set.system("thinker", &a, &v); err != nil || got != want {
					t.Fatalf("%+v: got %q, %v; want %q", v, got, err, want)
				}
			}
		})
	}
}

func TestSystemPartsAreKeptWithinABound(t *testing.T) {
	t.Parallel()
	set, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 3 * maxRendered {
				bot := fmt.Sprintf("Bot%d", n)
				p, err := set.Compose("thinker", Data{Bot: bot})
				if err != nil || !strings.HasPrefix(p.System, "You are the thinker of "+bot+",") {
					t.Errorf("%s: got %.60q, %v", bot, p.System, err)
				}
			}
		})
	}
	all.Wait()
	if n := len(set.systems.texts); n == 0 || n > maxRendered {
		t.Errorf("%d system parts are kept, want at most %d", n, maxRendered)
	}
}
