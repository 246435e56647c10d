package core_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// module is the name of this module: imports that begin with it are ours.
const module = "mimikit"

// walls says which packages of ours a package may import. A package without a
// row is refused, so that whoever adds one decides. "…" after a name stands for
// everything below it. What tests import is not judged here, except that the
// libraries keep to their homes.
var walls = map[string]struct {
	may []string
	why string
}{
	"core":                  {nil, "the tour is prose"},
	"core/chat":             {nil, "the nouns are the ground that everything stands on"},
	"core/llm":              {nil, "a model knows nothing of what it is asked for"},
	"core/llm/llmtest":      {[]string{"core/llm"}, "fakes stand beside the interface"},
	"core/telemetry…":       {nil, "everything may count, so counting knows nothing"},
	"core/store":            {nil, "a store is a Redis that was checked, whatever lives in it"},
	"core/store/faultproxy": {nil, "a proxy knows bytes"},
	"core/store/storetest":  {[]string{"core/store…"}, "servers for tests"},
	"core/channel":          {[]string{"core/chat", "core/store", "core/telemetry"}, "the roads do not know who travels on them"},
	"core/tokens":           {nil, "a tokenizer knows text"},
	"core/usage":            {[]string{"core/llm"}, "a ledger is numbers, whoever spent them"},
	"core/history":          {[]string{"core/chat", "core/tokens"}, "history is lines, whoever reads them"},
	"core/fold":             {[]string{"core/chat", "core/history", "core/tokens"}, "folding knows lines and a function that shortens them"},
	"core/memory":           {[]string{"core/chat", "core/channel", "core/tokens"}, "memory is notes, whoever reads them"},
	"core/attachment":       {[]string{"core/chat", "core/channel"}, "where a file is, whoever wants it"},
	"core/blob":             {nil, "a blob is text, whoever wrote it"},
	"core/feed":             {[]string{"core/chat"}, "a feed is what a terminal follows"},
	"core/action":           {[]string{"core/chat", "core/llm"}, "an action is described before it is done"},
	"core/rows":             {nil, "a reader of rows knows ids and texts, whatever they are of"},
	"core/task":             {[]string{"core/chat", "core/channel", "core/rows", "core/telemetry"}, "a task outlives who runs it"},
	"core/trigger":          {[]string{"core/chat", "core/channel", "core/rows", "core/task"}, "a trigger makes tasks"},
	"core/question":         {[]string{"core/chat", "core/channel", "core/rows", "core/task"}, "a question outlives who asked it, which may be a task"},
	"core/mcp":              {[]string{"core/action", "core/sandbox"}, "a server's tools are actions, whoever takes them"},
	"core/workspace":        {nil, "files know nothing of who edits them"},
	"core/sandbox":          {nil, "a sandbox knows processes"},
	"core/webread":          {nil, "a reader of pages knows no one who asks"},
	"prompts":               {[]string{"core/chat", "core/llm"}, "prompts are words about nouns"},
	"core/teller":           {loop, "a loop is a function from entries to effects; loops meet only in cmd's table"},
	"core/thinker":          {loop, "a loop is a function from entries to effects; loops meet only in cmd's table"},
	"core/worker…":          {loop, "a loop is a function from entries to effects; loops meet only in cmd's table"},
	"core/cluster":          {nil, "what nodes agree on is names and numbers"},
	"core/review":           {[]string{"core/chat", "core/channel", "core/history", "core/llm", "core/task", "core/usage"}, "a review looks back at what the others did, and no other looks at it"},
	"core/audit":            {[]string{"core/chat"}, "what was done is told to whoever asks"},
	"core/pause":            {[]string{"core/chat"}, "a pause is told to whoever asks"},
	"core/supervisor":       {loop, "a loop is a function from entries to effects; loops meet only in cmd's table"},
	"core/admin":            {[]string{"core/chat", "core/channel", "core/task", "core/trigger", "core/question", "core/history", "core/memory", "core/pause", "core/telemetry"}, "one command set for all doors"},
	"core/page":             {[]string{"core/chat", "core/admin"}, "the page shows what the commands say, and nothing else"},
	"adapters":              {[]string{"core/chat"}, "a platform sees messages and replies, never what is behind them"},
	"adapters/inbox":        {[]string{"adapters", "core/chat", "core/channel", "core/telemetry"}, "the one door in"},
	"adapters/outbox":       {[]string{"adapters", "core/chat", "core/channel", "core/telemetry"}, "the one door out"},
	"adapters/adaptertest…": {[]string{"adapters", "core/chat"}, "one suite for all platforms"},
	"adapters/console":      {[]string{"adapters", "core/chat", "core/feed"}, "a platform knows no other platform and nothing of the loops"},
	"adapters/alone":        {[]string{"core/chat"}, "one process remembers what many would share, whatever the platform"},
	"adapters/slack…":       {[]string{"adapters", "adapters/alone", "core/chat", "adapters/slack…"}, "a platform knows no other platform and nothing of the loops"},
	"adapters/discord…":     {[]string{"adapters", "adapters/alone", "core/chat", "adapters/discord…"}, "a platform knows no other platform and nothing of the loops"},
	"config":                {nil, "cmd translates settings into each package's options"},
	"cmd/" + module + "…":   {[]string{"core…", "adapters…", "prompts", "config", "cmd/" + module + "…"}, "cmd puts the parts together"},
}

// loop is what a loop may import: never another loop, never Redis.
var loop = []string{
	"core/trigger", "core/question", "core/tokens", "core/workspace", "core/sandbox", "core/webread",
	"core/chat", "core/action", "core/llm", "core/history", "core/memory", "core/task", "core/channel", "core/telemetry", "prompts",
}

// homes says where a library may be imported, tests included.
var homes = []struct {
	library string // and everything below it
	in      []string
	why     string
}{
	{"github.com/redis/go-redis", []string{
		"core/channel…", "core/store…", "core/history…", "core/task…", "core/memory…", "core/feed…", "core/blob…", "core/usage…", "core/fold…", "core/audit…", "core/cluster…", "core/trigger…", "core/question…", "core/attachment…", "core/review…", "core/pause…", "core/rows…", "cmd/" + module + "…",
	}, "Redis is spoken where state lives and nowhere above"},
	{"github.com/alicebob/miniredis", []string{"core/channel…", "core/store…", "core/feed…", "core/history…", "core/usage…", "core/fold…", "cmd/" + module + "…"}, "the store decides which Redis there is"},
	{"github.com/slack-go/slack", []string{"adapters/slack…"}, "a platform's SDK never leaves its adapter"},
	{"github.com/bwmarrin/discordgo", []string{"adapters/discord…"}, "a platform's SDK never leaves its adapter"},
	{"github.com/sashabaranov/go-openai", []string{"core/llm…"}, "a vendor's types never leave the model's door"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"core/mcp…"}, "a protocol's types never leave its door"},
	{"github.com/prometheus", []string{"core/telemetry…", "deploy/check"}, "what counts is one package's secret"},
	{"go.opentelemetry.io", []string{"core/telemetry…"}, "what is recorded leaves through one door"},
	{"github.com/knadh/koanf", []string{"config"}, "settings are read in one place"},
	{"go.yaml.in/yaml", []string{"config", "cmd/" + module + "…", "deploy/check"}, "settings are read in one place"},
	{"github.com/alecthomas/kong", []string{"cmd/" + module + "…"}, "only the command knows of flags"},
}

// stdOnly are the packages that import the standard library and nothing else.
var stdOnly = []string{"core", "core/chat"}

// forTests are helpers that no package of the running program may import. cmd
// may: its bench and chaos are tests that ship.
var forTests = regexp.MustCompile(`test$`)

// vague are names that say nothing of what a package is for.
var vague = []string{"util", "utils", "common", "helper", "helpers", "manager", "managers", "misc", "shared", "base"}

// below reports whether pkg is pattern, or lies below it when the pattern ends
// in "…".
func below(pkg, pattern string) bool {
	stem, open := strings.CutSuffix(pattern, "…")
	return pkg == stem || open && strings.HasPrefix(pkg, stem+"/")
}

func within(pkg string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return below(pkg, p) })
}

// A source is one Go file and what it imports.
type source struct {
	pkg, file string // both relative to the root, with slashes
	test      bool
	lines     int
	imports   []string
}

const root = ".."

// skip names folders that hold no source of ours.
func skip(name string) bool {
	return name == "testdata" || name == "bin" || name == "tools" || name != ".." && strings.HasPrefix(name, ".")
}

func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skip(d.Name()):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go":
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, data, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		s := source{file: filepath.ToSlash(rel), test: strings.HasSuffix(file, "_test.go"), lines: strings.Count(string(data), "\n")}
		s.pkg = path.Dir(s.file)
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, name)
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("only %d Go files found below %s: the walk is wrong", len(out), root)
	}
	return out
}

// judge says what is wrong with one import of a file; "" is nothing.
func judge(s source, imported string) string {
	for _, h := range homes {
		if (imported == h.library || strings.HasPrefix(imported, h.library+"/")) && !within(s.pkg, h.in) {
			return fmt.Sprintf("%s imports %s, which only %s may: %s", s.file, imported, strings.Join(h.in, ", "), h.why)
		}
	}
	if s.test {
		return ""
	}
	first, _, _ := strings.Cut(imported, "/")
	if first != module {
		if slices.Contains(stdOnly, s.pkg) && strings.Contains(first, ".") {
			return fmt.Sprintf("%s imports %s, but %s imports the standard library only", s.file, imported, s.pkg)
		}
		return ""
	}
	target := strings.TrimPrefix(imported, module+"/")
	if forTests.MatchString(target) && !forTests.MatchString(s.pkg) && !strings.HasPrefix(s.pkg, "cmd/") {
		return fmt.Sprintf("%s imports %s, which is for tests", s.file, imported)
	}
	for pattern, w := range walls {
		if below(s.pkg, pattern) {
			if below(target, pattern) || within(target, w.may) { // rooms of one house are open to each other
				return ""
			}
			may := "nothing of ours"
			if len(w.may) > 0 {
				may = strings.Join(w.may, ", ")
			}
			return fmt.Sprintf("%s imports %s; %s may import %s: %s", s.file, imported, s.pkg, may, w.why)
		}
	}
	return fmt.Sprintf("package %s has no row in the table of walls: add one and say why", s.pkg)
}

func TestWalls(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, i := range s.imports {
			if broken := judge(s, i); broken != "" {
				t.Error(broken)
			}
		}
	}
}

// The walls hold only if the judge sees a breach.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pkg, imports string
		test, broken bool
	}{
		{"core/chat", "time", false, false},
		{"core/chat", "golang.org/x/text", false, true},
		{"core/chat", module + "/core/llm", false, true},
		{"core/teller", module + "/core/chat", false, false},
		{"core/teller", module + "/core/thinker", false, true},
		{"core/thinker", module + "/core/teller", false, true},
		{"core/thinker", module + "/core/store", false, true},
		{"core/teller", "github.com/redis/go-redis/v9", false, true},
		{"core/teller", "github.com/redis/go-redis/v9", true, true},
		{"core/channel", "github.com/redis/go-redis/v9", false, false},
		{"core/history/fold", "github.com/redis/go-redis/v9", false, false},
		{"core/channel", module + "/config", false, true},
		{"core/channel", module + "/adapters", false, true},
		{"core/channel", module + "/core/store/storetest", false, true},
		{"core/channel", module + "/core/store/storetest", true, false},
		{"adapters/slack", "github.com/slack-go/slack/slackevents", false, false},
		{"adapters/slack", module + "/adapters/discord", false, true},
		{"adapters/discord", "github.com/slack-go/slack", false, true},
		{"adapters/outbox", module + "/core/channel", false, false},
		{"adapters/console", module + "/core/channel", false, true},
		{"adapters/console", module + "/core/feed", false, false},
		{"config", module + "/core/chat", false, true},
		{"cmd/" + module, module + "/adapters/slack", false, false},
		{"core/worker/sandbox", module + "/core/worker", false, false},
		{"core/novelty", module + "/core/chat", false, true},
	} {
		got := judge(source{pkg: c.pkg, file: c.pkg + "/x.go", test: c.test}, c.imports)
		if (got != "") != c.broken {
			t.Errorf("%s importing %s (test %v): got %q, want broken %v", c.pkg, c.imports, c.test, got, c.broken)
		}
	}
}

// A name that fits everything gathers everything.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if name := path.Base(s.pkg); slices.Contains(vague, name) {
			t.Errorf("package %s: %q does not say what it is for", s.pkg, name)
		}
	}
}

// A file that no one can keep in mind is two files.
func TestFileSizes(t *testing.T) {
	t.Parallel()
	const most = 500
	for _, s := range sources(t) {
		if !s.test && s.lines >= most {
			t.Errorf("%s has %d lines; fewer than %d are allowed", s.file, s.lines, most)
		}
	}
}

// What names a folder of one machine works on no other.
func TestNoPathsOfOneMachine(t *testing.T) {
	t.Parallel()
	foreign := regexp.MustCompile("(^|[\\s\"'`=:(,\\[])/(work|root)/")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
			return nil // not text
		}
		for n, line := range strings.Split(string(data), "\n") {
			if found := foreign.FindString(line); found != "" {
				t.Errorf("%s:%d names a folder of one machine: %s", file, n+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
