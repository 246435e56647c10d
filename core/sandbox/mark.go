package sandbox

import "crypto/rand"

// newMark is an environment entry that no other process has.
func newMark() string { return "MIMIKIT_PROCESS=" + rand.Text() }
