package main

import "syscall"

// endWithUs has a process end when the tests do, even if they are killed. A node
// that is asked to stop takes its redis-server along.
func endWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
