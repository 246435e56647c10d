package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"mimikit/core/store/storetest"
)

// smallDisk puts the data directory on a file system of a few MiB. fill takes all
// of its space, and free gives it back.
func (d *deployment) smallDisk() (fill, free func()) {
	d.Helper()
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		d.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size=4m,mode=700"); err != nil {
		d.Skipf("mount a small file system: %v (it takes root)", err)
	}
	d.Cleanup(func() {
		d.stopRedis() // its files would keep the file system
		if err := syscall.Unmount(d.dir, syscall.MNT_DETACH); err != nil {
			d.Error(err)
		}
	})
	filler := filepath.Join(d.dir, "filler")
	fill = func() {
		d.Helper()
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			d.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		for size := 1 << 20; size > 0; {
			switch n, err := f.Write(make([]byte, size)); {
			case errors.Is(err, syscall.ENOSPC):
				size /= 2
			case err != nil:
				d.Fatal(err)
			case n == 0:
				size = 0
			}
		}
	}
	free = func() {
		d.Helper()
		if err := os.Remove(filler); err != nil {
			d.Fatal(err)
		}
	}
	return fill, free
}

// A full disk: what is said meanwhile is not taken for stored, the person is told,
// and when there is space again it arrives and nothing was lost.
func TestFullDisk(t *testing.T) {
	storetest.Need(t)
	t.Parallel()
	hold := make(chan struct{})
	close(hold)
	d := deploy(t, counting(t, hold))
	fill, free := d.smallDisk()
	node, _ := d.serve()
	chat := d.start("chat", "--talk", "t")
	chat.say("say one")
	chat.out.shows(t, "First.")
	d.record(nil).settled()

	fill()
	// The last page of the file has room for a few small writes, such as those by
	// which the node shows that it lives.
	node.err.shows(t, "redis-server ended, starting it again")
	chat.say("say two")
	chat.err.shows(t, "The store is away, still trying.")
	select {
	case <-node.over:
		t.Fatal("the node ended")
	default:
	}
	free()
	chat.out.shows(t, "Second.")
	chat.say("say three")
	chat.ends(0)
	if got := chat.out.String(); got != "First.\n\nSecond.\n\nThird.\n" {
		t.Errorf("output %q, want each answer once", got)
	}
	d.record(nil).counted()
	// A stop on a full disk is clean. A start there either says that it cannot, or, where
	// Redis lived until the node had begun, does not give up: it goes on when there is
	// space, and tries with pauses.
	fill()
	node.stops(stopSignal, 0)
	node, url := d.serving()
	storetest.Eventually(t, "Redis fails", func() error {
		fill() // what the stop and the start have freed
		select {
		case <-node.over:
			return nil
		default:
		}
		if !strings.Contains(node.err.String(), "redis-server ended, starting it again") {
			return errors.New(node.err.String())
		}
		return nil
	})
	free()
	storetest.Eventually(t, "readiness", func() error {
		select {
		case <-node.over:
			node.ends(1)
			node, url = d.serving()
		default:
		}
		code, body, err := get(url + "/readyz")
		if err == nil && code != http.StatusOK {
			err = errors.New(body)
		}
		return err
	})
	if got := d.once("t", "and again, say three"); got != "Third." {
		t.Errorf("the answer is %q", got)
	}
	if n := strings.Count(node.err.String(), "starting it again"); n > 20 {
		t.Errorf("redis-server was started %d times", n)
	}
}
