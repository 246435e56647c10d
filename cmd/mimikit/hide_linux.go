package main

import "golang.org/x/sys/unix"

// hide keeps what is in our memory, and what our environment was when we began, from
// other programs of the same user: MCP servers and agents that we start are such, and
// could else read every secret in /proc. It also leaves no core dump. Root, who may
// read all, is not kept from it; that is why the node should not run as root. A failure
// only leaves things as they were.
func hide() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
