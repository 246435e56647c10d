package config

import (
	"strings"
	"testing"
)

// What cannot be read as a pattern or a name is told at the start, with its key.
func TestApprovalRules(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Approvals.Tools, c.Approvals.Commands = []string{"exec_shell", "mcp_github_*", "expert", "read?file"}, []string{`\brm\s+-rf\b`, "git push"}
	c.DataDir, c.Workspaces.Dir, c.Node = "/tmp/x", "/tmp/x/w", "n"
	if err := c.Validate(); err != nil {
		t.Errorf("refused: %v", err)
	}
	for key, change := range map[string]func(*Approvals){
		"approvals.commands": func(a *Approvals) { a.Commands = []string{"ok", "(?=no)"} },
		"approvals.tools":    func(a *Approvals) { a.Tools = []string{"exec shell"} },
		"approvals.by":       func(a *Approvals) { a.By = "anybody" },
		"approvals.timeout":  func(a *Approvals) { a.Timeout = 0 },
	} {
		c := c
		change(&c.Approvals)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
