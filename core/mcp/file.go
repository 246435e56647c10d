package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Server is one server and what of it may be used. Either Command or URL is set.
type Server struct {
	Name      string            // 1 to 24 of a-z, 0-9 and -
	Command   string            // its program, on PATH or a path
	Args      []string          //
	Env       map[string]string // all of its environment but PATH, HOME and LANG
	Dir       string            // where it is started; "" means its home
	URL       string            // of a server over streamable HTTP
	Headers   map[string]string // sent with each request
	Allow     []string          // names of tools; "*" means all
	Timeout   time.Duration     // of one call
	MaxOutput int               // bytes of one answer
	secrets   []string          // values that came from outside of the file
}

// The defaults and bounds of a server's entry.
const (
	DefaultTimeout   = time.Minute
	MaxTimeout       = time.Hour
	DefaultMaxOutput = 16 << 10
	MaxMaxOutput     = 256 << 10
	maxServers       = 50
	maxFile          = 1 << 20
)

// entry is a server as the file spells it: as other programs do, and with allow,
// timeout and maxOutput.
type entry struct {
	Type      string            `json:"type"`
	Command   string            `json:"command"`
	Args      []string          `json:"args"`
	Env       map[string]string `json:"env"`
	Cwd       string            `json:"cwd"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	Disabled  bool              `json:"disabled"`
	Allow     []string          `json:"allow"`
	Timeout   string            `json:"timeout"`
	MaxOutput int               `json:"maxOutput"`
}

// ReadFile reads the servers of a file, {"mcpServers": {"name": {…}}}. In values
// ${NAME} stands for a variable of the environment, and ${file:/path} for what a file
// holds, so that no secret needs to stand there. The error joins all that is wrong,
// and repeats no value that came from outside.
func ReadFile(path string, lookup func(name string) (string, bool)) ([]Server, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read MCP servers: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read MCP servers from %s: %w", path, err)
	}
	list, err := parse(data, lookup)
	if err != nil {
		return nil, fmt.Errorf("read MCP servers from %s: %w", path, err)
	}
	return list, nil
}

func parse(data []byte, lookup func(string) (string, bool)) ([]Server, error) {
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := strict(data, &file); err != nil {
		return nil, fmt.Errorf(`want {"mcpServers": {"name": {"command": …}}}: %w`, err)
	}
	if len(file.Servers) > maxServers {
		return nil, fmt.Errorf("there are %d servers; at most %d are allowed", len(file.Servers), maxServers)
	}
	var list []Server
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		var e entry
		if err := strict(file.Servers[name], &e); err != nil {
			problems = append(problems, fmt.Errorf("server %q: %w", name, err))
			continue
		}
		if e.Disabled {
			continue
		}
		s, bad := e.server(name, lookup)
		for _, err := range bad {
			problems = append(problems, fmt.Errorf("server %q: %w", name, err))
		}
		list = append(list, s)
	}
	return list, errors.Join(problems...)
}

// strict decodes one JSON value whose fields are all known.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("it is not as it must be: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows after its end")
	}
	return nil
}

var (
	nameForm     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$`)
	variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerForm   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	reference    = regexp.MustCompile(`\$\{([^}]*)\}`)
)

// server checks an entry and fills in what it leaves open.
func (e entry) server(name string, lookup func(string) (string, bool)) (Server, []error) {
	s := Server{Name: name, Dir: e.Cwd, Allow: e.Allow, Timeout: DefaultTimeout, MaxOutput: DefaultMaxOutput}
	var bad []error
	wrong := func(format string, args ...any) { bad = append(bad, fmt.Errorf(format, args...)) }
	fill := func(field, value string) string {
		return reference.ReplaceAllStringFunc(value, func(ref string) string {
			got, err := resolve(reference.FindStringSubmatch(ref)[1], lookup)
			if err != nil {
				wrong("%s: %w", field, err)
			} else if len(got) >= 6 {
				s.secrets = append(s.secrets, got)
			}
			return got
		})
	}
	if !nameForm.MatchString(name) {
		wrong("its name must have 1 to 24 of a-z, 0-9 and -")
	}
	s.Command, s.URL = fill("command", e.Command), fill("url", e.URL)
	for i, a := range e.Args {
		s.Args = append(s.Args, fill(fmt.Sprintf("args[%d]", i), a))
	}
	s.Env, s.Headers = map[string]string{}, map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(e.Env)) {
		if !variableForm.MatchString(k) {
			wrong("env: %q is no name of an environment variable", k)
		}
		s.Env[k] = fill("env."+k, e.Env[k])
	}
	for _, k := range slices.Sorted(maps.Keys(e.Headers)) {
		s.Headers[k] = fill("headers."+k, e.Headers[k])
		if !headerForm.MatchString(k) || strings.ContainsAny(s.Headers[k], "\r\n\x00") {
			wrong("headers: %q has a name or a value that no header can have", k)
		}
	}
	u, err := url.Parse(s.URL)
	switch {
	case (s.Command == "") == (s.URL == ""):
		wrong("give either command or url")
	case s.URL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil):
		wrong("url: want an http or https URL without credentials; those go into headers")
	case s.URL != "" && len(e.Args)+len(e.Env) > 0, s.Command != "" && len(e.Headers) > 0:
		wrong("args and env are for command, headers for url")
	}
	switch t := e.Type; {
	case t == "", t == "stdio" && s.Command != "", (t == "http" || t == "streamable-http" || t == "streamableHttp") && s.URL != "":
	default:
		wrong("type: %q is not to be had here; there are stdio (with command) and http (with url)", t)
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		wrong("cwd: %q is not absolute", s.Dir)
	}
	if len(s.Allow) == 0 || slices.Contains(s.Allow, "") {
		wrong(`allow: name the tools that tasks may use, or ["*"] for all`)
	}
	if e.Timeout != "" {
		if s.Timeout, err = time.ParseDuration(e.Timeout); err != nil || s.Timeout < 100*time.Millisecond || s.Timeout > MaxTimeout {
			wrong("timeout: %q; want 100ms to %s", e.Timeout, MaxTimeout)
		}
	}
	if e.MaxOutput != 0 {
		if s.MaxOutput = e.MaxOutput; s.MaxOutput < 256 || s.MaxOutput > MaxMaxOutput {
			wrong("maxOutput: %d; want 256 to %d bytes", s.MaxOutput, MaxMaxOutput)
		}
	}
	return s, bad
}

// resolve gives what a reference stands for.
func resolve(ref string, lookup func(string) (string, bool)) (string, error) {
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		if !filepath.IsAbs(path) {
			return "", fmt.Errorf("${%s}: the path is not absolute", ref)
		}
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("${%s}: %w", ref, err)
		}
		if !info.Mode().IsRegular() || info.Size() > 64<<10 {
			return "", fmt.Errorf("${%s}: want a plain file of at most 64 KiB", ref)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("${%s}: %w", ref, err)
		}
		return strings.TrimSpace(string(data)), nil
	}
	if !variableForm.MatchString(ref) {
		return "", fmt.Errorf("${%s}: want ${NAME} of the environment, or ${file:/path}", ref)
	}
	value, ok := lookup(ref)
	if !ok {
		return "", fmt.Errorf("${%s}: the environment has no such variable", ref)
	}
	return value, nil
}
