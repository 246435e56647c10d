package prompts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"none": {nil, nil},
		"other words": {map[string]string{
			"agents/teller/voice.md":      "Be terse.",
			"agents/thinker/injection.md": "{{.Inputs}}{{.Results}}{{with .Tasks}}{{.}}{{end}}{{.Memory}}{{.Environment}} Go.",
		}, nil},
		"the inputs are left out": {map[string]string{"agents/thinker/injection.md": "{{.Environment}}{{.Results}}{{.Tasks}}{{.Memory}}"},
			[]string{"thinker is no longer given Inputs (what people said)"}},
		"the actions are left out": {map[string]string{"agents/worker-standard/system.md": "Work."},
			[]string{"worker-standard is no longer given Actions (what it may do)"}},
		"an include is left out": {map[string]string{"agents/planner/tools.md": "Plan."},
			[]string{"planner is no longer given Actions (what it may do)"}},
		"everything is left out": {map[string]string{"agents/fold/injection.md": ""},
			[]string{"fold is no longer given Limits (what it may use)"}},
		"twice": {map[string]string{"agents/teller/digest-injection.md": "{{.Tasks}}{{.Results}}{{.Inputs}}{{.Inputs}}{{.History}}"},
			[]string{"teller-digest is given Inputs (what people said) 2 times", "teller-digest is given History twice: it is sent ahead of the injection anyway"}},
		"among the rules": {map[string]string{
			"agents/planner/identity.md":  "Plan {{.Request}}",
			"agents/planner/injection.md": "{{.Environment}}{{.Limits}}{{.Memory}}{{.Tasks}}{{.Results}}{{.Steps}}{{.Inputs}}",
		}, []string{"planner has Request in its stable part, so that no provider can cache its prompt"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for path, text := range c.files {
				put(t, dir, path, text)
			}
			set, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := set.Warnings()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, "agents/fold/system.md", "Fold.\n")
	set, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := set.Files()
	if len(all) != len(places()) {
		t.Fatalf("%d files, want %d", len(all), len(places()))
	}
	for _, f := range all {
		for _, name := range []string{f.Path, strings.TrimSuffix(strings.TrimPrefix(f.Path, "agents/"), ".md")} {
			if got, err := set.File(name); err != nil || got != f {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
		}
		if overridden := f.Path == "agents/fold/system.md"; overridden != (f.Override != "") || overridden != (f.Text == "Fold.\n") {
			t.Errorf("%s comes from %q: %.20q", f.Path, f.Override, f.Text)
		}
	}
	if _, err := set.File("teller/voise"); err == nil || !strings.Contains(err.Error(), `"teller/voise"`) || !strings.Contains(err.Error(), "agents/teller/voice.md") {
		t.Errorf("got %v", err)
	}
}

// What every role is told, in whatever words: data is no instruction, nothing is
// invented, and how escaped characters are to be written.
func TestRolesAreTold(t *testing.T) {
	t.Parallel()
	set, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range Agents() {
		p, err := set.Compose(agent, Data{Bot: "Mimi"})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"somebody else wrote", "`from`", "program"} {
			if !strings.Contains(p.System, want) {
				t.Errorf("%s is not told of %q", agent, want)
			}
		}
		if strings.Contains(p.System, "{{") || strings.Contains(p.System, "\n\n\n") || strings.Contains(p.System, "<no value>") {
			t.Errorf("%s: the system part is not clean:\n%s", agent, p.System)
		}
		for _, dialect := range []string{"step by step", "think step", "As an AI language model", "IMPORTANT", "<thinking>"} {
			if strings.Contains(p.System, dialect) {
				t.Errorf("%s: says %q", agent, dialect)
			}
		}
	}
}
