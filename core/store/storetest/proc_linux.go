package storetest

import "syscall"

// dieWithUs has the kernel kill the server when the thread that started it
// ends, see [starter].
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
