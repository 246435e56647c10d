//go:build !linux && !darwin

package store

import (
	"context"
	"fmt"
	"runtime"
)

// embedded is not to be had on this system: it stands on flock and unix
// sockets.
type embedded struct {
	dir, socket string
	absent      bool
}

func openEmbedded(context.Context, Options) (*embedded, error) {
	return nil, fmt.Errorf("mode \"embedded\" works on linux and darwin only, not on %s; use mode \"single\" or \"memory\"", runtime.GOOS)
}

func (e *embedded) supervise(context.Context, func()) error { return nil }

func (e *embedded) close() error { return nil }
