package llm

import "testing"

func TestCountings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"count the lines of every Go file here":      "find . -type f -name '*.go' -exec wc -l {} +",
		"Count all the lines in the .md files":       "find . -type f -name '*.md' -exec wc -l {} +",
		"zähle die Zeilen aller Python-Dateien":      "find . -type f -name '*.py' -exec wc -l {} +",
		"统计所有 go 文件的行数":                              "find . -type f -name '*.go' -exec wc -l {} +",
		"cuenta las líneas de los archivos markdown": "find . -type f -name '*.md' -exec wc -l {} +",
	} {
		calls := requested(text, &job{})
		if len(calls) != 1 || calls[0].name != "exec_shell" || calls[0].args["command"] != want {
			t.Errorf("%q: %+v, want %q", text, calls, want)
		}
		if !asksWork().MatchString(text) {
			t.Errorf("%q starts no task", text)
		}
	}
	for _, text := range []string{"count the lines of `x; rm` files", "count the lines of my poem"} {
		if calls := requested(text, &job{}); len(calls) != 0 {
			t.Errorf("%q: %+v", text, calls)
		}
	}
}
