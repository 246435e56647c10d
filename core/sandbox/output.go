package sandbox

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// An output keeps the beginning and the end of a text of any length. The end of
// a build's output says what failed, its beginning what was tried.
type output struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where in the ring the next byte goes
	most  int    // bytes of each half
	total int64
}

func newOutput(most int) *output { return &output{most: max(most/2, 1)} }

// Write takes everything: a writer that blocked would keep a command alive.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	o.total += int64(n)
	if room := o.most - len(o.head); room > 0 {
		take := min(room, len(p))
		o.head, p = append(o.head, p[:take]...), p[take:]
	}
	if len(p) > o.most { // only the end can stay
		p = p[len(p)-o.most:]
	}
	if room := o.most - len(o.tail); room > 0 {
		take := min(room, len(p))
		o.tail, p = append(o.tail, p[:take]...), p[take:]
	}
	for len(p) > 0 {
		took := copy(o.tail[o.next:], p)
		o.next, p = (o.next+took)%o.most, p[took:]
	}
	return n, nil
}

// text is what was kept, with a note where something was cut, and how many bytes
// were.
func (o *output) text() (string, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := bytes.Join([][]byte{o.tail[o.next:], o.tail[:o.next]}, nil)
	omitted := o.total - int64(len(o.head)) - int64(len(tail))
	if omitted == 0 {
		return clean(append(bytes.Clone(o.head), tail...)), 0
	}
	head := o.head
	for len(head) > 0 && !utf8.RuneStart(head[len(head)-1]) { // a letter cut in half says nothing
		head = head[:len(head)-1]
	}
	if len(head) > 0 && head[len(head)-1] >= utf8.RuneSelf {
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	omitted = o.total - int64(len(head)) - int64(len(tail))
	return fmt.Sprintf("%s\n[… %d bytes of output left out …]\n%s", clean(head), omitted, clean(tail)), omitted
}

// clean makes a text of bytes. A zero byte ends a string for half of the world.
func clean(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", "\uFFFD")
}
