package sandbox_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// alive counts the host's processes whose command line holds a word.
func alive(t *testing.T, word string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if b, _ := os.ReadFile(f); bytes.Contains(b, []byte(word)) {
			n++
		}
	}
	return n
}

// A duration that no other test sleeps, by which a process is found again.
func uniqueSleep() string {
	var b [4]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%d.%d", 100_000+int(b[0])<<8+int(b[1]), int(b[2])<<8+int(b[3])+1)
}

// await waits for what another process does; there is no clock to inject there.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatal("it did not happen within 20 s")
		case <-time.After(5 * time.Millisecond):
		}
	}
}
