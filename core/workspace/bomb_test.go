package workspace_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mimikit/core/workspace"
)

// A patch that is built to be dear is refused, or done, in moments. Without its
// bounds each of these takes longer than any test may.
func TestPatchBomb(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	f.put("same", strings.Repeat("a\n", 300_000)) // equal lines
	lines := func(mark string, n int) string { return strings.Repeat(mark+"a\n", n) }
	one := func(at, n int) string {
		return fmt.Sprintf("@@ -%d,%d +%d,%d @@\n%s-b\n+c\n", at, n+1, at, n+1, lines(" ", n))
	}
	var many strings.Builder
	for i := range 2000 {
		many.WriteString(one(i*60+1, 50))
	}
	var file, wrong strings.Builder
	for i := range 1 << 18 {
		fmt.Fprintf(&file, "%x\n", i)
	}
	for i := range 20_000 {
		fmt.Fprintf(&wrong, "@@ -1 +1 @@\n-%x\n+z\n", (1<<18)-20_000+i)
	}
	f.put("unlike", file.String())
	_, err := f.Patch(t.Context(), "--- a/unlike\n+++ b/unlike\n"+wrong.String())
	f.refused(err, "takes too long")
	for name, patch := range map[string]string{
		"one long hunk that nearly fits everywhere": one(7, 100_000),
		"many hunks that nearly fit everywhere":     many.String(),
		"a count beyond all lines":                  "@@ -1,999999999 +1,999999999 @@\n" + lines(" ", 1000) + "-b\n+c\n",
		"a place beyond all lines":                  one(2_000_000_000, 1000),
		"more added than a file may hold":           "@@ -1 +1,400000 @@\n a\n" + strings.Repeat("+"+strings.Repeat("x", 20)+"\n", 399_999),
	} {
		began := time.Now()
		_, err := f.Patch(t.Context(), "--- a/same\n+++ b/same\n"+patch)
		f.refused(err, "")
		t.Logf("%s: %d KiB, %s", name, len(patch)>>10, time.Since(began).Round(time.Millisecond))
	}
}

// A search for an expression that is built to be dear ends like any other.
func TestSearchBomb(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	f.put("long", strings.Repeat("a", 100_000)+"\n")
	f.put("lines", strings.Repeat(strings.Repeat("a", 60)+"\n", 300))
	for _, expression := range []string{"(a+)+$", "(a|a)*b", "(.*a){20}c", "((a*)*)*b", strings.Repeat("(a?)", 60) + "b", "[a-z]{500}b", "(?i)" + strings.Repeat("(x|y|a)*", 30)} {
		if _, err := f.Search(t.Context(), workspace.Query{Text: expression, Regex: true}); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
	for _, expression := range []string{"(((a{1000}){1000}){1000})", strings.Repeat("(", 400), strings.Repeat("a", 600)} {
		_, err := f.Search(t.Context(), workspace.Query{Text: expression, Regex: true})
		f.refused(err, "")
	}
}

// Names of conversations are made by platforms, of what people choose. None leads out
// of the storage, and no two share a workspace.
func TestHostileConversations(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	names := []string{
		"", ".", "..", "../..", "/etc", "a/b", "a//b", "a/./b", "A/B", "a/b/", "a\x00b", "a", "A", "\u00e9", "e\u0301", "\u202ea", "con", "a ", " a",
		strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("a", 100_000), strings.Repeat("../", 1000) + "etc/passwd", "\xff\xfe", "-rf", "~", "storage-id", "workspaces",
	}
	at := map[string]string{} // :: folder → conversation
	for _, name := range names {
		w, err := f.storage.Open(name)
		if err != nil {
			t.Fatalf("%.40q: %v", name, err)
		}
		dir := w.HostDir()
		if other, taken := at[strings.ToLower(dir)]; taken {
			t.Errorf("%.40q and %.40q share a workspace", name, other)
		}
		at[strings.ToLower(dir)] = name
		if filepath.Dir(dir) != filepath.Dir(f.dir) || len(filepath.Base(dir)) > 64 || strings.Trim(filepath.Base(dir), "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Errorf("%.40q has the folder %s", name, dir)
		}
		if _, err := w.Write(t.Context(), "mine", []byte(name)); err != nil {
			t.Errorf("%.40q: %v", name, err)
		}
		_ = w.Close()
	}
	for _, name := range names {
		if err := f.storage.Remove(name); err != nil {
			t.Errorf("%.40q: %v", name, err)
		}
	}
	if err := f.storage.Mounted(); err != nil {
		t.Errorf("after all were removed: %v", err)
	}
}
