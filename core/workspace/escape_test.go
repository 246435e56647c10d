//go:build unix

package workspace_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mimikit/core/workspace"
)

// Every way in is tried with every way out.
func TestNothingLeadsOut(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret.txt")
	if err := os.WriteFile(secret, []byte("hunter2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	up := strings.Repeat("../", 30)
	link(secret, "absolute")
	link(up+secret[1:], "relative")
	link(outside, "folder")
	link("../", "parent")
	link("absolute", "chain")
	link("circle", "circle")
	link("/proc/self/root/etc/passwd", "proc")
	paths := []string{
		"absolute", "relative", "folder/secret.txt", "chain", "circle", "proc", "parent/x", "folder/new.txt",
		secret, "/etc/passwd", "../x", "a/../../x", up + secret[1:], "~/x", "/workspace/../x", "/workspace/../../etc/passwd", "a\x00b", "", "/workspacex", "//etc/passwd",
	}
	ctx := t.Context()
	for _, p := range paths {
		_, err := f.Read(ctx, p, 0, 0)
		f.refused(err, "")
		_, err = f.Write(ctx, p, []byte("overwritten"))
		f.refused(err, "")
		_, err = f.Edit(ctx, p, "hunter2", "x", false)
		f.refused(err, "")
		if p != "" && !strings.ContainsAny(p, "\x00") {
			_, err = f.Patch(ctx, "--- "+p+"\n+++ "+p+"\n@@ -1 +1 @@\n-hunter2\n+x\n")
			f.refused(err, "")
			_, err = f.Patch(ctx, "--- /dev/null\n+++ b/"+p+"\n@@ -0,0 +1 @@\n+x\n")
			f.refused(err, "")
			_, err = f.Search(ctx, workspace.Query{Text: "hunter2", Path: p})
			f.refused(err, "")
		}
		if _, err = f.Folder(p); p != "" {
			f.refused(err, "")
		}
	}
	for _, pattern := range []string{"**/*", "folder/*", "parent/**", secret, "../*", "*/../../*", "/etc/*", "absolute", "{../,}*"} {
		s, err := f.Snapshot(ctx, pattern)
		if err == nil {
			for p := range s.Files {
				if strings.Contains(p, "secret") || strings.Contains(p, "..") || strings.HasPrefix(p, "folder") || p == "absolute" {
					t.Errorf("pattern %s sees %v", pattern, s.Files)
				}
			}
		}
	}
	hits, err := f.Search(ctx, workspace.Query{Text: "hunter2"})
	if err != nil || len(hits.Hits) != 0 {
		t.Errorf("search follows links: %v, %v", hits, err)
	}
	if b, _ := os.ReadFile(secret); string(b) != "hunter2\n" {
		t.Errorf("the file outside is now %q", b)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("files were made outside: %v", entries)
	}
}

// Another conversation's workspace lies next door.
func TestConversationsAreApart(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	other, err := f.storage.Open("../../slack:T1:C1:1.2")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if _, err := other.Write(t.Context(), "a.txt", []byte("theirs")); err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(other.HostDir()) != filepath.Dir(f.dir) || other.HostDir() == f.dir {
		t.Errorf("the workspaces are %s and %s", other.HostDir(), f.dir)
	}
	_, err = f.Read(t.Context(), "../"+filepath.Base(other.HostDir())+"/a.txt", 0, 0)
	f.refused(err, "leads out")
	if info, err := os.Stat(f.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the workspace has %v, %v", info.Mode(), err)
	}
}

// A pipe without a writer blocks who opens it; nothing here may.
func TestSpecialFilesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	if err := syscall.Mkfifo(filepath.Join(f.dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	if len(f.dir)+5 < 104 {
		l, err := net.Listen("unix", filepath.Join(f.dir, "sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
	} else {
		f.put("sock/x", "") // a path too long for a socket: a folder does
	}
	if err := os.Symlink("pipe", filepath.Join(f.dir, "topipe")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(f.dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, p := range []string{"pipe", "sock", "topipe", "dir", "."} {
			_, err := f.Read(ctx, p, 0, 0)
			f.refused(err, "")
			_, err = f.Write(ctx, p, []byte("x"))
			f.refused(err, "")
			_, err = f.Edit(ctx, p, "a", "b", false)
			f.refused(err, "")
			_, err = f.Patch(ctx, "--- a/"+p+"\n+++ b/"+p+"\n@@ -1 +1 @@\n-a\n+b\n")
			f.refused(err, "")
		}
		if _, err := f.Search(ctx, workspace.Query{Text: "x", Path: "pipe"}); err != nil {
			t.Error(err)
		}
		if _, err := f.Search(ctx, workspace.Query{Text: "x"}); err != nil {
			t.Error(err)
		}
		if s, err := f.Snapshot(ctx, "**/*"); err != nil || s.Files["pipe"] != "" {
			t.Errorf("snapshot: %v, %v", s, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("something waits for a pipe")
	}
}

// A shell in the sandbox swaps files and links while we work.
func TestRacesDoNotLeadOut(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	outside := t.TempDir()
	secret := filepath.Join(outside, "x")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.put("real/x", "inside")
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		at, tmp := filepath.Join(f.dir, "d"), filepath.Join(f.dir, "tmp")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.RemoveAll(tmp)
			switch i % 3 {
			case 0:
				_ = os.Symlink(outside, tmp)
			case 1:
				_ = os.Mkdir(tmp, 0o700)
				_ = os.WriteFile(filepath.Join(tmp, "x"), []byte("inside"), 0o600)
			case 2:
				_ = syscall.Mkfifo(tmp, 0o600)
			}
			_ = os.RemoveAll(at)
			_ = os.Rename(tmp, at)
		}
	})
	ctx := t.Context()
	for range 400 {
		if p, err := f.Read(ctx, "d/x", 0, 0); err == nil && strings.Contains(p.String(), "hunter2") {
			t.Error("a race read the file outside")
		}
		_, _ = f.Write(ctx, "d/x", []byte("written"))
		_, _ = f.Edit(ctx, "d/x", "n", "m", true)
		if s, err := f.Search(ctx, workspace.Query{Text: "hunter2"}); err == nil && len(s.Hits) > 0 {
			t.Error("a race searched the file outside")
		}
	}
	close(stop)
	swapping.Wait()
	if b, _ := os.ReadFile(secret); string(b) != "hunter2" {
		t.Errorf("a race wrote the file outside: %q", b)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("a race made files outside: %v", entries)
	}
}

// What a command made unreadable is measured and removed all the same.
func TestShutFolders(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{Bytes: 100})
	f.put("shut/big", strings.Repeat("x", 90))
	if err := os.Chmod(filepath.Join(f.dir, "shut"), 0); err != nil {
		t.Fatal(err)
	}
	_, err := f.Write(t.Context(), "more", []byte(strings.Repeat("x", 20)))
	f.refused(err, "do not fit")
	if err := os.Chmod(filepath.Join(f.dir, "shut"), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.storage.Remove("slack:T1:C1:1.2"); err != nil {
		t.Error(err)
	}
	if there, err := f.storage.Exists("slack:T1:C1:1.2"); there || err != nil {
		t.Errorf("after removing: %v, %v", there, err)
	}
	if err := f.storage.Remove("slack:T1:C1:1.2"); err != nil {
		t.Errorf("removing twice: %v", err)
	}
}
