package main

import (
	"flag"
	"os"
	"testing"

	"mimikit/core/store/storetest"
)

// asMimikit makes the test binary be the program, so that what runs in the
// processes of these tests is what was compiled for them, race detector and all.
// It is no MIMIKIT_ variable: those that do not exist are refused.
const asMimikit = "TEST_BINARY_AS_MIMIKIT"

func TestMain(m *testing.M) {
	if os.Getenv(asMimikit) != "" {
		main() // it does not return
	}
	if os.Getenv(asServer) != "" {
		serveMCP()
		os.Exit(0)
	}
	// The tests wait for processes more than they compute. A flag of the caller's wins.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	storetest.Main(m, ignoreStarter)
}
