package config

import (
	"path/filepath"
	"regexp"
	"time"
)

// Expert sets the expert profile: a command line agent that carries out a task in
// the conversation's workspace.
type Expert struct {
	Timeout  time.Duration `koanf:"timeout" allow:"1s..24h"`
	Agent    string        `koanf:"agent" allow:"codex|plain"` // plain: any command that takes a prompt and prints the result
	Command  string        `koanf:"command"`                   // its program, on PATH or a path
	Args     []string      `koanf:"args"`                      // further arguments; {prompt} stands for the prompt with PlainAgent, else it comes as input
	Walls    string        `koanf:"walls" allow:"on|off"`      // on: bubblewrap around it, or it is not to be had; Off: only the walls that it has itself
	ReadOnly []string      `koanf:"readOnly"`                  // more files and folders of the host that it sees within walls
	Network  bool          `koanf:"network"`                   // commands of the agent may reach the network
	Env      []string      `koanf:"env"`                       // variables of the service's environment that it and its commands are given
	Stall    time.Duration `koanf:"stall" allow:"1s..1h"`      // silence after which it is ended
	BaseURL  string        `koanf:"baseURL"`                   // of its model, for codex; empty: llm.baseURL, with its key and headers
	Key      Secret        `koanf:"key"`                       // MIMIKIT_WORKER_EXPERT_KEY or KeyFile only
	KeyFile  string        `koanf:"keyFile" path:"y"`
}

// The values of Expert.Agent.
const (
	CodexAgent = "codex"
	PlainAgent = "plain"
)

// MCP names the servers of the Model Context Protocol whose tools standard tasks may
// use.
type MCP struct {
	File string `koanf:"file" path:"y"` // JSON, see docs/experts.md; empty: none
}

// defaultExpert is what Default gives.
func defaultExpert() Expert {
	return Expert{Timeout: 10 * time.Minute, Agent: CodexAgent, Command: "codex", Walls: "on", Stall: 5 * time.Minute}
}

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expertForms are the rules of its keys.
var expertForms = map[string]form{
	"worker.expert.command":  {"a program on PATH, or its path", func(s string) bool { return s != "" && plain(s) }},
	"worker.expert.args":     {"text without control characters" + listed, func(s string) bool { return plain(s) }},
	"worker.expert.readOnly": {"an absolute path, not the root" + listed, func(s string) bool { return plain(s) && filepath.IsAbs(s) && filepath.Clean(s) != "/" }},
	"worker.expert.env":      {"the name of an environment variable" + listed, variableForm.MatchString},
	"worker.expert.baseURL":  {baseURLForm, optional(isBaseURL)},
}
