//go:build !linux

package storetest

import "syscall"

// dieWithUs has no counterpart here: a test process that is killed leaves its
// servers behind.
func dieWithUs() *syscall.SysProcAttr { return nil }
