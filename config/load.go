package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

const (
	envPrefix = "MIMIKIT_"
	// EnvFile is the variable that names the YAML file when no path is given.
	EnvFile = envPrefix + "CONFIG"
)

// Load reads the configuration: defaults, the preset of pace, the YAML file at
// path, the variables of environ ("NAME=value", as os.Environ gives them). An
// empty path means the file that MIMIKIT_CONFIG names, or none. An empty
// variable counts as not set.
//
// What only the start can know is filled in: Node, DataDir, Workspaces.Dir,
// absolute paths, and the secrets read from their files. The error joins every
// [Problem].
func Load(path string, environ []string) (Config, error) {
	if path == "" {
		path = lookup(environ, EnvFile)
	}
	c, err := layered(path, environ)
	if err != nil {
		return Config{}, err
	}
	if err := errors.Join(c.settle(environ), c.Validate()); err != nil {
		return Config{}, err
	}
	return c, nil
}

// layered merges the sources and nothing more: it reads no secret and resolves
// no path.
func layered(path string, environ []string) (Config, error) {
	file := newLayer()
	if path != "" {
		var err error
		if file, err = readFile(path); err != nil {
			return Config{}, err
		}
	}
	env := readEnv(environ)
	if err := errors.Join(slices.Concat(file.problems, env.problems)...); err != nil {
		return Config{}, err
	}

	c, preset := Default(), newLayer()
	pace := Chat
	for _, l := range []*layer{file, env} {
		if p, ok := l.values["pace"].(Pace); ok {
			pace = p
		}
	}
	c.preset(pace) // an unknown pace is told by Validate
	for _, name := range presetKeys {
		preset.values[name] = byName[name].get(&c)
		preset.origin[name] = "preset " + string(pace)
	}

	k := koanf.New(".")
	origin := map[string]string{}
	for _, l := range []*layer{defaults(), preset, file, env} {
		if err := k.Load(confmap.Provider(nest(l.values), ""), nil); err != nil {
			return Config{}, fmt.Errorf("merge config: %w", err)
		}
		for name, where := range l.origin {
			origin[name] = where
		}
	}
	merged := Config{origin: origin}
	if err := k.UnmarshalWithConf("", &merged, koanf.UnmarshalConf{Tag: "koanf"}); err != nil {
		return Config{}, fmt.Errorf("decode config: %w", err)
	}
	return merged, nil
}

func defaults() *layer {
	l, def := newLayer(), Default()
	for i := range keys {
		l.values[keys[i].Name] = keys[i].get(&def)
		l.origin[keys[i].Name] = "default"
	}
	return l
}

// nest turns dotted names into the tree that they spell.
func nest(flat map[string]any) map[string]any {
	root := map[string]any{}
	for name, v := range flat {
		m := root
		parts := strings.Split(name, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := m[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				m[p] = next
			}
			m = next
		}
		m[parts[len(parts)-1]] = v
	}
	return root
}

// What Kubernetes and old Docker links put into every container for a service
// whose name begins with mimikit. Those are not ours to refuse: a Service named
// mimikit must not keep the bot from starting.
var (
	serviceName = regexp.MustCompile(`^MIMIKIT_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	servicePort = regexp.MustCompile(`^MIMIKIT_(\w+_)?PORT=(tcp|udp|sctp)://`)
)

func readEnv(environ []string) *layer {
	l := newLayer()
	names := make([]string, 0, len(keys)+1)
	for i := range keys {
		names = append(names, keys[i].Env)
	}
	names = append(names, EnvFile)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, envPrefix) || name == EnvFile {
			continue
		}
		k := byEnv[name]
		switch {
		case k == nil && (serviceName.MatchString(name) || servicePort.MatchString(kv)):
		case k == nil:
			l.bad("environment", name, "", unknown("variable", name, names))
		case value == "":
		case !utf8.ValidString(value):
			l.bad("environment", name+" ("+k.Name+")", "", "is not UTF-8")
		default:
			v, err := k.parse(value)
			if err != nil {
				l.bad("environment", name+" ("+k.Name+")", k.shown(value), err.Error())
				continue
			}
			l.values[k.Name], l.origin[k.Name] = v, "env "+name
		}
	}
	return l
}

func lookup(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// settle fills in what only the start can know.
func (c *Config) settle(environ []string) error {
	var problems []error
	home := lookup(environ, "HOME")
	if c.DataDir == "" {
		switch state := lookup(environ, "XDG_STATE_HOME"); {
		case filepath.IsAbs(state): // the XDG rules have a relative one ignored
			c.DataDir = filepath.Join(state, "mimikit")
		case home != "":
			c.DataDir = filepath.Join(home, ".local", "state", "mimikit")
		default:
			problems = append(problems, c.problem("dataDir", "", "is not set and neither XDG_STATE_HOME nor HOME says where state belongs; set "+byName["dataDir"].Env))
		}
	}
	for i := range keys {
		k := &keys[i]
		p, _ := k.get(c).(string)
		if !k.path || p == "" {
			continue
		}
		abs, err := absolute(p, home)
		if err != nil {
			problems = append(problems, c.problem(k.Name, k.shown(p), err.Error()))
			continue
		}
		k.set(c, abs)
	}
	if c.Workspaces.Dir == "" && c.DataDir != "" {
		c.Workspaces.Dir = filepath.Join(c.DataDir, "workspaces")
	}
	for _, s := range []struct {
		key  string
		file string
		into *Secret
	}{
		{"llm.key", c.LLM.KeyFile, &c.LLM.Key},
		{"llm.second.key", c.LLM.Second.KeyFile, &c.LLM.Second.Key},
		{"redis.password", c.Redis.PasswordFile, &c.Redis.Password},
		{"worker.expert.key", c.Worker.Expert.KeyFile, &c.Worker.Expert.Key},
		{"slack.botToken", c.Slack.BotTokenFile, &c.Slack.BotToken},
		{"slack.appToken", c.Slack.AppTokenFile, &c.Slack.AppToken},
		{"slack.signingSecret", c.Slack.SigningSecretFile, &c.Slack.SigningSecret},
		{"discord.token", c.Discord.TokenFile, &c.Discord.Token},
		{"page.token", c.Page.TokenFile, &c.Page.Token},
		{"telemetry.otlp.key", c.Telemetry.OTLP.KeyFile, &c.Telemetry.OTLP.Key},
	} {
		if err := c.readSecret(s.key, s.file, s.into); err != nil {
			problems = append(problems, err)
		}
	}
	if c.Node == "" {
		c.Node = newNode()
		c.origin["node"] = "made at start"
	}
	return errors.Join(problems...)
}

func absolute(path, home string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		if home == "" {
			return "", errors.New("begins with ~ but HOME is not set")
		}
		path = filepath.Join(home, rest)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot be made absolute: %w", err)
	}
	return abs, nil
}

// maxSecret bounds a secret's file; what is larger is some other file.
const maxSecret = 64 * KiB

// readSecret reads a secret from its file unless the environment gave it: the
// nearer source holds. Given by the environment in both ways, neither is
// nearer.
func (c *Config) readSecret(key, file string, into *Secret) error {
	fileKey := key + "File"
	if file == "" {
		return nil
	}
	if *into != "" {
		if strings.HasPrefix(c.origin[fileKey], "env ") {
			return c.problem(key, "", fmt.Sprintf("is set twice; unset %s or %s", byName[key].Env, byName[fileKey].Env))
		}
		return nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return c.problem(fileKey, "", "cannot be read: "+err.Error())
	}
	if !info.Mode().IsRegular() || info.Size() > int64(maxSecret) {
		return c.problem(fileKey, file, fmt.Sprintf("must be a plain file of at most %s that holds the secret and nothing else", maxSecret))
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return c.problem(fileKey, "", "cannot be read: "+err.Error())
	}
	s := strings.TrimSpace(string(data))
	if s == "" {
		return c.problem(fileKey, file, "is empty; it must hold the secret and nothing else")
	}
	*into = Secret(s)
	c.origin[key] = "file " + file
	return nil
}
