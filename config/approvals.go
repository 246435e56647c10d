package config

import (
	"regexp"
	"time"
)

// Approvals say what tasks may not do before somebody has allowed it.
type Approvals struct {
	Tools    []string      `koanf:"tools"`    // names or globs of the worker's actions and of MCP tools; expert: the start of an expert's task
	Commands []string      `koanf:"commands"` // RE2 patterns, looked for in shell commands
	By       string        `koanf:"by" allow:"requester|operator|admin"`
	Timeout  time.Duration `koanf:"timeout" allow:"1m..720h"` // without an answer for so long it is refused
}

// The values of Approvals.By.
const (
	ByRequester = "requester" // who asked for the task
	ByOperator  = "operator"  // an operator or admin of the task's workspace
	ByAdmin     = "admin"     // an admin of it
)

var toolForm = regexp.MustCompile(`^[A-Za-z0-9_*?-]{1,64}$`)

// approvalForms are the rules of its keys.
var approvalForms = map[string]form{
	"approvals.tools": {"the name of a tool, like exec_shell, mcp_github_* or expert" + listed, toolForm.MatchString},
	"approvals.commands": {`a regular expression in the syntax of RE2, like \bgit push\b` + listed, func(s string) bool {
		_, err := regexp.Compile(s)
		return s != "" && err == nil
	}},
}
