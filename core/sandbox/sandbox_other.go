//go:build !(linux && (amd64 || arm64))

package sandbox

import (
	"context"
	"fmt"
	"runtime"
)

// Available fails with [ErrUnavailable]: the sandbox is made of Linux namespaces.
func (s *Sandbox) Available(context.Context) error {
	return fmt.Errorf("%w: it needs Linux on amd64 or arm64, and this is %s on %s; run the node in a Linux virtual machine",
		ErrUnavailable, runtime.GOOS, runtime.GOARCH)
}

// Run fails with [ErrUnavailable].
func (s *Sandbox) Run(ctx context.Context, _ Command) (Result, error) {
	return Result{}, s.Available(ctx)
}
