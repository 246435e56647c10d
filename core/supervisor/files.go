package supervisor

import (
	"context"
	"fmt"

	"mimikit/core/chat"
	"mimikit/core/trigger"
	"mimikit/core/workspace"
)

// WorkspaceFiles looks at the files of conversations in a storage.
func WorkspaceFiles(s *workspace.Storage) Files { return workspaces{s} }

type workspaces struct{ storage *workspace.Storage }

func (f workspaces) Storages() []string {
	if f.storage.Mounted() != nil {
		return nil // another node may have it
	}
	return []string{f.storage.ID()}
}

func (f workspaces) Look(ctx context.Context, c chat.Conversation, storage, pattern string, content bool) (s trigger.FileSight) {
	if storage != f.storage.ID() {
		s.Err = fmt.Errorf("its storage %s is not here", storage)
		return s
	}
	there, err := f.storage.Exists(c.Key())
	if err != nil || !there {
		s.Err = err
		return s
	}
	ws, err := f.storage.Open(c.Key())
	if err != nil {
		s.Err = err
		return s
	}
	defer func() { _ = ws.Close() }()
	if !content {
		names, err := ws.Glob(ctx, pattern)
		s.Exists, s.Err = len(names) > 0, err
		return s
	}
	seen, err := ws.Snapshot(ctx, pattern)
	s.Hash, s.Exists, s.Err = seen.Hash, len(seen.Files) > 0, err
	return s
}
