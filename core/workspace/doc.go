// Package workspace is where a conversation keeps its files. What works on them
// is a model that reads pages and files of strangers, so every path, pattern and
// patch is taken for an attack until it is opened.
//
// It promises:
//
//   - A path leads to a file of its own workspace or nowhere. Files are opened
//     through [os.Root], so no "..", absolute path, link or race leaves it, and
//     what is no plain file (pipe, socket, device) is refused and never waited
//     for.
//   - A file is whole at any moment: it is written beside and renamed. A patch of
//     several files is applied to all or to none, except that a crash of the
//     machine between two renames can leave the first part done.
//   - A file that changed between reading and writing is not overwritten by an
//     edit or a patch; within one process they also take turns. Plain writes
//     replace what is there.
//   - Everything is bounded: bytes and files of a workspace, and the time, bytes
//     and hits of a search.
//   - No answer and no error names a path of the host, except those of opening a
//     [Storage], which are for the operator, and [Workspace.HostDir].
//
// What a model can mend comes as a [*Refusal], whose text says what, which value
// and what is allowed. Other errors are the machine's.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// A Refusal is an error that whoever asked can mend. Its text is for a model.
type Refusal struct{ text string }

func (r *Refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// bare is an error without the path that the system put into it: ours is said
// already, and the host's is nobody's business.
func bare(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	var call *os.SyscallError
	switch {
	case errors.As(err, &path):
		return bare(path.Err)
	case errors.As(err, &link):
		return bare(link.Err)
	case errors.As(err, &call):
		return call.Err
	}
	return err
}

// explain makes of the system's error what a model can act on.
func explain(doing, path string, err error) error {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return err
	}
	path = say(path)
	why := ""
	switch cause := bare(err); {
	case errors.Is(cause, fs.ErrNotExist):
		why = "there is no such file or folder"
	case errors.Is(cause, fs.ErrExist):
		why = "it exists already"
	case errors.Is(cause, fs.ErrPermission):
		why = "its permissions forbid it"
	case errors.Is(cause, syscall.ENOTDIR):
		why = "a part of the path is a file and not a folder"
	case errors.Is(cause, syscall.EISDIR):
		why = "it is a folder and not a file"
	case errors.Is(cause, syscall.ELOOP):
		why = "its links go in a circle"
	case errors.Is(cause, syscall.ENAMETOOLONG):
		why = "a name in it is longer than the 255 bytes that are allowed"
	case errors.Is(cause, syscall.ENXIO), errors.Is(cause, syscall.ENODEV):
		why = "it is a pipe, socket or device, not a file"
	case errors.Is(cause, syscall.EINVAL):
		why = "it is no name of a file"
	case strings.Contains(cause.Error(), "escapes"): // os.Root has no name for it
		why = "it leads out of the workspace; only relative links that stay inside are followed"
	default:
		return fmt.Errorf("%s %s: %w", doing, path, cause)
	}
	return refuse("%s %s: %s", doing, path, why)
}
