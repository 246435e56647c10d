package workspace

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"strings"
)

// MaxListed is how many entries a listing has at most.
const MaxListed = 1000

// An Item is one entry of a listing.
type Item struct {
	Path  string
	Kind  string // file, folder, link, pipe, socket, device
	Bytes int64  // of a file
}

// A Listing is what a folder holds.
type Listing struct {
	Items []Item
	More  bool // there are more than these
}

// List lists a folder, and so many levels of folders in it (0 means 1, its own
// entries). The contents of .git folders are left out.
func (w *Workspace) List(ctx context.Context, p string, levels int) (Listing, error) {
	rel, err := w.Folder(cmp.Or(p, "."))
	if err != nil {
		return Listing{}, err
	}
	levels = cmp.Or(levels, 1)
	if levels < 1 || levels > deepest {
		return Listing{}, refuse("list %s: %d levels are not within 1 and %d", rel, levels, deepest)
	}
	var l Listing
	err = w.walk(ctx, rel, func(e entry) error {
		if len(l.Items) == MaxListed {
			l.More = true
			return errEnough
		}
		item := Item{Path: e.path, Kind: kind(e.info.Mode())}
		if e.info.Mode().IsRegular() {
			item.Bytes = e.info.Size()
		}
		l.Items = append(l.Items, item)
		if depth := strings.Count(below(rel, e.path), "/") + 1; e.info.IsDir() && (depth >= levels || e.info.Name() == ".git") {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return Listing{}, explain("list", rel, err)
	}
	return l, nil
}

// String is the listing for a model, one entry a line.
func (l Listing) String() string {
	var b strings.Builder
	for _, i := range l.Items {
		switch i.Kind {
		case "file":
			fmt.Fprintf(&b, "%s (%s)\n", say(i.Path), size(i.Bytes))
		case "folder":
			fmt.Fprintf(&b, "%s/\n", say(i.Path))
		default:
			fmt.Fprintf(&b, "%s (%s)\n", say(i.Path), i.Kind)
		}
	}
	if len(l.Items) == 0 {
		b.WriteString("The folder is empty.\n")
	}
	if l.More {
		fmt.Fprintf(&b, "[these are the first %d; there are more]\n", MaxListed)
	}
	return b.String()
}
