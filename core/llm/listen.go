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

// A Show lets people see an answer while its words come. It is a view and no more:
// what counts is what is committed afterwards.
type Show struct {
	Delta   func(text string) // the next words
	Restart func()            // what was shown is void; what follows begins anew
	End     func(kept bool)   // nothing follows; what was shown is the answer, or void
}

// On has a request tell its words to the show; a nil one is told nothing.
func (s *Show) On(req *Request) {
	if s != nil {
		req.OnDelta, req.OnRestart = s.Delta, s.Restart
	}
}

// Again says that another request will give the words.
func (s *Show) Again() {
	if s != nil {
		s.Restart()
	}
}

// Close ends the show.
func (s *Show) Close(kept bool) {
	if s != nil {
		s.End(kept)
	}
}
