package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// A told is a pipe through which a program is told something.
type told struct {
	text         []byte
	ours, theirs *os.File
}

// tell makes a pipe for each text, the first of which the program finds as descriptor
// 3. Pipes and not files, so that nothing of it is on a disk.
func tell(cmd *exec.Cmd, texts [][]byte) ([]told, error) {
	var all []told
	for _, text := range texts {
		r, w, err := os.Pipe()
		if err != nil {
			for _, t := range all {
				_, _ = t.ours.Close(), t.theirs.Close()
			}
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		all = append(all, told{text, w, r})
		cmd.ExtraFiles = append(cmd.ExtraFiles, r)
	}
	return all, nil
}

// write tells a program that has started what it is to be told, and closes what is
// its. over is to be called when it has ended: one that did not read all does not hold
// us.
func write(all []told, started bool) (over func()) {
	var writers sync.WaitGroup
	for _, t := range all {
		_ = t.theirs.Close()
		if !started {
			_ = t.ours.Close()
			continue
		}
		writers.Go(func() {
			_, _ = t.ours.Write(t.text) // it says itself when it cannot go on without
			_ = t.ours.Close()
		})
	}
	return func() {
		for _, t := range all {
			_ = t.ours.Close()
		}
		writers.Wait()
	}
}
