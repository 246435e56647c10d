package worker

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// home makes the agent's home of a conversation, and keeps it from being cleaned away
// until release is called. Only this user can look into it.
func (e *Expert) home(conversation string) (dir string, release func(), err error) {
	sum := sha256.Sum256([]byte(conversation)) // a platform made the key, and a hash can be no path
	name := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
	dir = filepath.Join(e.o.Homes, name)
	e.homes.take(dir)
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	now := e.o.Now()
	if err == nil {
		err = os.Chtimes(dir, now, now) // Clean goes by it
	}
	if err != nil {
		e.homes.leave(dir)
		return "", nil, fmt.Errorf("make the agent's home: %w", err)
	}
	return dir, func() { e.homes.leave(dir) }, nil
}

// knows says whether the agent's home holds a talk. It is that of one node: a task
// that moved to another begins a new talk.
func (e *Expert) knows(home, thread string) bool {
	if !threadForm.MatchString(thread) {
		return false
	}
	found, err := filepath.Glob(filepath.Join(home, "sessions", "*", "*", "*", "rollout-*-"+thread+".jsonl*"))
	return err == nil && len(found) > 0
}

// Clean removes the homes of conversations in which no agent has worked for so long.
// It gives how many went.
func (e *Expert) Clean(keep time.Duration, now time.Time) (int, error) {
	list, err := os.ReadDir(e.o.Homes)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("clean the homes of agents: %w", err)
	}
	n := 0
	var problems []error
	for _, d := range list {
		dir := filepath.Join(e.o.Homes, d.Name())
		info, err := d.Info()
		if err != nil || !d.IsDir() || now.Sub(info.ModTime()) <= keep {
			continue
		}
		gone, err := e.homes.away(dir)
		if gone != "" {
			err = os.RemoveAll(gone)
			n++
		}
		if err != nil {
			problems = append(problems, err)
		}
	}
	return n, errors.Join(problems...)
}

// inUse counts who uses a folder.
type inUse struct {
	mu sync.Mutex
	of map[string]int // :: folder -> how many use it
}

func (u *inUse) take(dir string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of[dir]++
}

func (u *inUse) leave(dir string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of[dir]--; u.of[dir] <= 0 {
		delete(u.of, dir)
	}
}

// away puts a folder that nobody uses out of the way of who would begin to, and
// gives its new name; "" when it is in use.
func (u *inUse) away(dir string) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of[dir] > 0 {
		return "", nil
	}
	if strings.HasSuffix(dir, goneSuffix) { // a clean-up that was cut off
		return dir, nil
	}
	gone := dir + goneSuffix
	if err := os.Rename(dir, gone); err != nil {
		return "", err
	}
	return gone, nil
}

const goneSuffix = ".gone"
