package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The README shows a choice of the keys; what it says of them must be so.
func TestReadme(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)` \\| (?:`([^`]*)`)? ?\\|")
	rows := row.FindAllStringSubmatch(string(data), -1)
	if len(rows) < 10 {
		t.Fatalf("only %d rows of the README's table found", len(rows))
	}
	def := Default()
	for _, r := range rows {
		k := byName[r[1]]
		if k == nil {
			t.Errorf("README names the key %s, which does not exist", r[1])
			continue
		}
		if want := k.format(k.get(&def)); r[1] != "dataDir" && r[2] != want {
			t.Errorf("README says %s is %q by default; it is %q", r[1], r[2], want)
		}
	}
}

// What the documents and the files for deployment set must be settings.
func TestDocsNameSettings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	for _, name := range []string{"README.md", "SECURITY.md", "compose.yaml", "Dockerfile", "deploy/mimikit.service"} {
		files = append(files, filepath.Join("..", name))
	}
	sections := map[string]bool{}
	for i := range keys {
		parts := strings.Split(keys[i].Name, ".")
		for n := 1; n < len(parts); n++ {
			sections[strings.Join(parts[:n], ".")] = true
		}
	}
	secret := func(env string) bool {
		k := byEnv[strings.TrimSuffix(env, "_FILE")]
		return k != nil && k.Secret
	}
	variable, quoted := regexp.MustCompile(`MIMIKIT_[A-Z_]*[A-Z]`), regexp.MustCompile("`([a-z][A-Za-z]*(?:\\.[a-z][A-Za-z]*)+)(?:: [^`]*)?`")
	seen := 0
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, env := range variable.FindAllString(string(data), -1) {
			if seen++; byEnv[env] == nil && env != EnvFile && !secret(env) {
				t.Errorf("%s names the variable %s, which does not exist", f, env)
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(string(data), -1) {
			section, _, _ := strings.Cut(m[1], ".")
			if !sections[section] {
				continue // no setting: a file, a stage, a method of a platform
			}
			if seen++; byName[m[1]] == nil && !sections[m[1]] {
				t.Errorf("%s names the setting %s, which does not exist", f, m[1])
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d settings were found", seen)
	}
}
