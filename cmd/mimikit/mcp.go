package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mimikit/config"
	"mimikit/core/action"
	"mimikit/core/mcp"
)

// newServers makes the MCP servers that are configured; nil where none are. It starts
// nothing.
func newServers(cfg config.Config, log *slog.Logger) (*mcp.Set, error) {
	if cfg.MCP.File == "" {
		return nil, nil
	}
	list, err := mcp.ReadFile(cfg.MCP.File, os.LookupEnv)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return mcp.New(mcp.Options{Servers: list, Home: filepath.Join(cfg.DataDir, "mcp"), Version: version, Logger: log}), nil
}

// serverTools gives the actions of a standard worker, own ones and those of MCP
// servers, as they are when a task asks; nil where there are no servers.
func (a *App) serverTools(own []action.Definition) (func(ctx context.Context) *action.Registry, error) {
	var err error
	if a.mcp, err = newServers(a.cfg, a.log); err != nil || a.mcp == nil {
		return nil, err
	}
	return func(ctx context.Context) *action.Registry {
		all, err := action.New(slices.Concat(own, a.mcp.Definitions(ctx))...)
		if err != nil {
			a.log.ErrorContext(ctx, "mcp_tools_left_out", "error", err)
			return nil
		}
		return all
	}, nil
}

// mcpFound reaches each MCP server.
func mcpFound(ctx context.Context, cfg config.Config) []finding {
	set, err := newServers(cfg, quiet)
	if err != nil {
		return []finding{{What: "MCP", Say: err.Error(), Mend: "mend the file that mcp.file names; the bot does not start with it"}}
	}
	if set == nil {
		return nil
	}
	defer set.Close()
	var list []finding
	for _, s := range set.Look(ctx) {
		f := finding{What: "MCP " + s.Server, OK: s.Err == nil && len(s.Missing) == 0, Note: true}
		switch {
		case s.Err != nil:
			f.Say, f.Mend = s.Err.Error(), "its tools are not offered until then"
		case len(s.Missing) > 0:
			f.Say, f.Mend = fmt.Sprintf("it has no tool %s", strings.Join(s.Missing, ", ")), "see its allow in "+cfg.MCP.File
		default:
			f.Say = fmt.Sprintf("%d tools: %s", len(s.Tools), strings.Join(s.Tools, ", "))
		}
		list = append(list, f)
	}
	return list
}
