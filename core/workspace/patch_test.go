package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/workspace"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		patch string
		want  map[string]string
		done  []workspace.Patched
	}{
		"change": {
			map[string]string{"a": "1\n2\n3\n"}, "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n", map[string]string{"a": "1\ntwo\n3\n"},
			[]workspace.Patched{{Path: "a", Action: "changed", Added: 1, Removed: 1}},
		},
		"no prefixes, no end": {
			map[string]string{"d/a": "1\n2\n"}, "--- d/a\n+++ d/a\n@@ -2 +2 @@\n-2\n+3", map[string]string{"d/a": "1\n3\n"},
			[]workspace.Patched{{Path: "d/a", Action: "changed", Added: 1, Removed: 1}},
		},
		"many": {
			map[string]string{"a": "1\n", "b": "2\n", "old": "x\ny\nz\n", "gone": "bye\n"},
			"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n" +
				"diff --git a/new/x b/new/x\nnew file mode 100755\n--- /dev/null\n+++ b/new/x\n@@ -0,0 +1,2 @@\n+hello\n+world\n" +
				"diff --git a/old b/moved\nsimilarity index 60%\nrename from old\nrename to moved\n--- a/old\n+++ b/moved\n@@ -2 +2 @@\n-y\n+why\n" +
				"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n",
			map[string]string{"a": "one\n", "b": "2\n", "new/x": "hello\nworld\n", "moved": "x\nwhy\nz\n"},
			[]workspace.Patched{
				{Path: "a", Action: "changed", Added: 1, Removed: 1}, {Path: "new/x", Action: "created", Added: 2},
				{Path: "moved", From: "old", Action: "renamed", Added: 1, Removed: 1}, {Path: "gone", Action: "deleted", Removed: 1},
			},
		},
		"wrong line number": {
			map[string]string{"a": "0\n0\n1\n2\n3\n"}, "--- a/a\n+++ b/a\n@@ -40,2 +40,2 @@\n 2\n-3\n+three\n", map[string]string{"a": "0\n0\n1\n2\nthree\n"},
			[]workspace.Patched{{Path: "a", Action: "changed", Added: 1, Removed: 1}},
		},
		"two hunks": {
			map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"}, "--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n 1\n+1.5\n 2\n@@ -8,2 +9,1 @@\n 8\n-9\n", map[string]string{"a": "1\n1.5\n2\n3\n4\n5\n6\n7\n8\n"},
			[]workspace.Patched{{Path: "a", Action: "changed", Added: 1, Removed: 1}},
		},
		"insert without context": {
			map[string]string{"a": "1\n2\n3\n"}, "--- a/a\n+++ b/a\n@@ -2,0 +3 @@\n+2.5\n", map[string]string{"a": "1\n2\n2.5\n3\n"},
			[]workspace.Patched{{Path: "a", Action: "changed", Added: 1}},
		},
		"insert at the end": {
			map[string]string{"a": "1\n2\n"}, "--- a/a\n+++ b/a\n@@ -2,0 +3 @@\n+3\n", map[string]string{"a": "1\n2\n3\n"},
			[]workspace.Patched{{Path: "a", Action: "changed", Added: 1}},
		},
		"into an empty file": {
			map[string]string{"a": ""}, "--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+3\n", map[string]string{"a": "3\n"},
			[]workspace.Patched{{Path: "a", Action: "changed", Added: 1}},
		},
		"looks like a header": {
			map[string]string{"a": "-- b/x\n1\n"}, "--- a/a\t2026-01-01\n+++ b/a\t2026-01-02\n@@ -1,2 +1,2 @@\n--- b/x\n+++ b/y\n 1\n", map[string]string{"a": "++ b/y\n1\n"},
			[]workspace.Patched{{Path: "a", Action: "changed", Added: 1, Removed: 1}},
		},
		"a folder named b": {
			map[string]string{"b/a": "1\n"}, "diff --git a/b/a b/b/a\n--- a/b/a\n+++ b/b/a\n@@ -1 +1 @@\n-1\n+2\n", map[string]string{"b/a": "2\n"},
			[]workspace.Patched{{Path: "b/a", Action: "changed", Added: 1, Removed: 1}},
		},
		"dos": {
			map[string]string{"a": "1\r\n2\r\n"}, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n", map[string]string{"a": "1\r\n3\r\n"},
			[]workspace.Patched{{Path: "a", Action: "changed", Added: 1, Removed: 1}},
		},
		"no newline at end": {
			map[string]string{"a": "1\n2"}, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n\\ No newline at end of file\n+3\n", map[string]string{"a": "1\n3\n"},
			[]workspace.Patched{{Path: "a", Action: "changed", Added: 1, Removed: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, workspace.Bounds{})
			for p, content := range c.files {
				f.put(p, content)
			}
			done, err := f.Patch(t.Context(), c.patch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, f.tree()) + cmp.Diff(c.done, done); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatchMode(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	f.put("run", "x\n")
	if _, err := f.Patch(t.Context(), "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(f.dir, "run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := f.Patch(t.Context(), "--- a/run\n+++ b/run\n@@ -1 +1 @@\n-x\n+y\n"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(f.dir, "run")); err != nil || info.Mode().Perm() != 0o755 || f.got("run") != "y\n" {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// Whatever is wrong with one file, none is touched.
func TestPatchIsAllOrNothing(t *testing.T) {
	t.Parallel()
	good := "--- a/good\n+++ b/good\n@@ -1 +1 @@\n-1\n+one\n--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+x\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
	for name, c := range map[string]struct{ patch, says string }{
		"context":     {"--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-two\n+2\n", `line 2 differs`},
		"ambiguous":   {"--- a/twice\n+++ b/twice\n@@ -9 +9 @@\n-x\n+y\n", "several places, beginning in lines 1, 3"},
		"missing":     {"--- a/none\n+++ b/none\n@@ -1 +1 @@\n-x\n+y\n", "no such file"},
		"exists":      {"--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n", "exists already"},
		"leftover":    {"--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n", ""},
		"twice":       {"--- a/good\n+++ b/good\n@@ -1 +1 @@\n-1\n+uno\n", "changed twice"},
		"outside":     {"--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n", "leads out"},
		"link":        {"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n", "links"},
		"binary":      {"diff --git a/p b/p\nnew file mode 100644\nindex 000..111\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n", ""},
		"below file":  {"--- /dev/null\n+++ b/a/b\n@@ -0,0 +1 @@\n+x\n", ""},
		"counts":      {"--- a/a\n+++ b/a\n@@ -1,5 +1,5 @@\n 1\n-2\n+3\n", "cannot be read"},
		"order":       {"--- a/twice\n+++ b/twice\n@@ -3 +3 @@\n-x\n+y\n@@ -1 +1 @@\n-x\n+y\n", "hunk 2"},
		"two names":   {"--- a/a\n+++ b/z\n@@ -1 +1 @@\n-1\n+x\n", "rename from old"},
		"a last step": {"--- /dev/null\n+++ b/" + strings.Repeat("n", 300) + "\n@@ -0,0 +1 @@\n+x\n", "255"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, workspace.Bounds{})
			f.put("good", "1\n")
			f.put("a", "1\n2\n")
			f.put("twice", "x\ny\nx\n")
			f.put("gone", "bye\n")
			before := f.tree()
			_, err := f.Patch(t.Context(), good+c.patch)
			f.refused(err, c.says)
			if diff := cmp.Diff(before, f.tree()); diff != "" {
				t.Errorf("something changed: %s", diff)
			}
			if _, err := os.Stat(filepath.Join(f.dir, "new")); err == nil {
				t.Error("a folder was left behind")
			}
		})
	}
}

func TestPatchThatIsNone(t *testing.T) {
	t.Parallel()
	f := open(t, workspace.Bounds{})
	for patch, says := range map[string]string{
		"":                                      "no change",
		"please change a to b":                  "no change",
		"*** Begin Patch\n*** Update File: a\n": "unified diff",
		strings.Repeat("x", 2<<20):              "at most 1 MiB",
		"--- a/a\n+++ b/a\n@@ -x +1 @@\n-1\n":   "cannot be read",
		"--- a/a\n+++ b/a\n@@ -1,99999999999999999999 +1 @@\n-1\n":      "cannot be read",
		"diff --git a/a b/a\nold mode 100644\nnew mode 1777777777777\n": "cannot be read",
	} {
		_, err := f.Patch(t.Context(), patch)
		f.refused(err, says)
	}
}
