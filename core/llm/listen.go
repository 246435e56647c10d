package llm

// A listener stands between an answer as it streams and whoever hears it, and
// knows whether anything was heard that a new attempt makes void.
type listener struct {
	restart func()
	heard   bool
}

// listen puts a listener into req. Wrappers that may call a model more than
// once do so, one around the other.
func listen(req *Request) *listener {
	l := &listener{restart: req.OnRestart}
	if req.OnDelta == nil {
		return l
	}
	delta := req.OnDelta
	req.OnDelta = func(text string) {
		l.heard = true
		delta(text)
	}
	req.OnRestart = l.void
	return l
}

// void says that what was heard so far counts for nothing.
func (l *listener) void() {
	if !l.heard {
		return
	}
	l.heard = false
	if l.restart != nil {
		l.restart()
	}
}
