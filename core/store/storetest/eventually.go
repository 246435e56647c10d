package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Eventually asks again and again until try gives no error, and ends the test
// with the last one after two minutes. It is for what real processes do in their
// own time; where there is an event to wait for, wait for that.
func Eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	const patience = 2 * time.Minute
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// has is an error unless the answer to INFO has all those lines.
func has(info string, lines ...string) error {
	for _, l := range lines {
		if !strings.Contains(info, l+"\r\n") {
			return fmt.Errorf("no line %q in:\n%s", l, info)
		}
	}
	return nil
}
