package action

import "strings"

// How text may be seen by people, and how a block acts, is one machine, so that
// what was streamed and what is posted are the same.

// A splitter parts a text into what people see and a block of actions, as it
// comes in.
type splitter struct {
	show  func(text string)      // what people see, without white space at either end
	known func(name string) bool // names of actions, for lines that stand outside of a block

	buf   string
	more  strings.Builder // what came after buf while nothing but the end of a line is waited for
	waits bool
	state state
	begun bool // the current line was looked at already
	words bool // the current line has text that people see
	code  bool // it is indented so far that Markdown shows it as code
	ticks int  // backquotes on it so far
	fence string
	shown bool // the fence that is open holds a block

	gap     string // white space that is shown once more text comes
	started bool   // something was shown

	held    strings.Builder // a fence of which it is not known yet whether it wraps a block
	block   strings.Builder
	content string // of the block that ended last
	quoted  bool   // within a value of the block
	blocks  int
	wrong   error // the first thing that keeps the block from acting
}

type state int

const (
	inText       state = iota
	inFence            // of code: nothing in it acts
	atFence            // after its first line: it may wrap a block
	inFenceBlock       // it begins with a block's tag
	afterFence         // it was closed; if nothing follows, it was meant to act
	inBlock
)

// write takes the next piece of the text.
func (s *splitter) write(text string) {
	if s.waits && !strings.Contains(text, "\n") {
		s.more.WriteString(text)
		return
	}
	s.gather(text)
	for s.step(false) {
	}
}

// gather joins what came with what is looked at.
func (s *splitter) gather(text string) {
	s.more.WriteString(text)
	s.buf += s.more.String()
	s.more.Reset()
	s.waits = false
}

// close takes the end of the text. It gives what stands in the block, and why it
// does not act when it does not.
func (s *splitter) close() (content string, err error) {
	s.gather("")
	for s.step(true) {
	}
	switch s.state {
	case atFence:
		s.release()
	case inFenceBlock, afterFence:
		s.fail("the block of actions stands in a code fence, where it does not act; if it is meant to act, write it again without the fence; " +
			"if it is only shown to somebody, let text follow it")
	case inFence:
		if s.shown {
			s.fail("a code fence is not closed, and a block of actions stands in it, where it does not act; close the fence before the block, " +
				"or after it if it is only shown to somebody")
		}
	case inBlock:
		if s.quoted {
			s.fail(`a value in the block of actions is not closed with a ", or the block not with </MIMIKIT:actions>; write it again`)
		} else {
			s.fail("the block of actions is not closed with </MIMIKIT:actions>; write it again")
		}
	}
	if s.wrong != nil {
		return "", s.wrong
	}
	return s.content, nil
}

func (s *splitter) fail(text string) {
	if s.wrong == nil {
		s.wrong = &Mistake{Text: text}
	}
}

// step takes one bite of the buffer; false means that it needs more.
func (s *splitter) step(end bool) bool {
	if s.buf == "" {
		return false
	}
	switch s.state {
	case inBlock:
		return s.stepBlock(end)
	case atFence, inFenceBlock, afterFence:
		return s.stepHeld(end)
	case inFence:
		return s.stepFence(end)
	}
	return s.stepText(end)
}

// line gives the first whole line of the buffer, its break included.
func (s *splitter) line(end bool) (string, bool) {
	if i := strings.IndexByte(s.buf, '\n'); i >= 0 {
		return s.buf[:i+1], true
	}
	s.waits = !end
	return s.buf, end
}

func (s *splitter) take(n int) string {
	t := s.buf[:n]
	s.buf = s.buf[n:]
	return t
}

// newLine says that the next byte begins a line.
func (s *splitter) newLine() { s.begun, s.words, s.code, s.ticks = false, false, false, 0 }

func (s *splitter) stepText(end bool) bool {
	if !s.begun {
		first := strings.TrimLeft(s.buf, " \t")
		indent := s.buf[:len(s.buf)-len(first)]
		s.code = len(indent) > 3 || strings.Contains(indent, "\t")
		switch {
		case first == "" && !end:
			return false
		case first != "" && strings.IndexByte("`~@", first[0]) >= 0:
			l, whole := s.line(end)
			if !whole {
				return false
			}
			if f := opensFence(l); f != "" {
				s.fence, s.state = f, atFence
				s.held.WriteString(s.take(len(l)))
				return true
			}
			if s.isAction(l) {
				s.fail("a line with an action stands outside of the block, where it does not act; actions go between " +
					"<MIMIKIT:actions> and </MIMIKIT:actions>, at the end of the text")
				s.take(len(l))
				return true
			}
		}
		s.begun = true
	}
	i := strings.IndexAny(s.buf, "<`\n")
	if i < 0 {
		s.visible(s.take(len(s.buf)))
		return true
	}
	s.visible(s.take(i))
	switch s.buf[0] {
	case '\n':
		s.visible(s.take(1))
		s.newLine()
		return true
	case '`':
		s.ticks++
		s.visible(s.take(1))
		return true
	}
	if s.ticks%2 == 1 { // in code
		s.visible(s.take(1))
		return true
	}
	kind, size := readTag(s.buf, end)
	switch kind {
	case tagPartial:
		return false
	case tagNone:
		s.visible(s.take(1))
		return true
	case tagClose:
		s.fail("</MIMIKIT:actions> closes a block that was not opened")
	case tagOther:
		s.fail("the tag " + excerpt(s.buf[:size]) + " is none; a block of actions begins with <MIMIKIT:actions> and ends with </MIMIKIT:actions>")
	case tagOpen:
		if s.blocks++; s.blocks > 1 {
			s.fail("there are several blocks of actions, and none of them acts; write one, at the end of the text")
		}
		if s.words || s.code {
			s.fail("the block of actions is indented or begins in the middle of a line, where it does not act; if it is meant to act, let <MIMIKIT:actions> " +
				"stand at the start of a line; if it is only shown to somebody, put it in a code fence with text after it")
		}
		s.state, s.quoted = inBlock, false
	}
	s.take(size)
	return true
}

// visible passes text on, white space only once text follows it.
func (s *splitter) visible(text string) {
	body := strings.TrimLeft(text, space)
	if body == "" {
		s.gap += text
		return
	}
	if s.blocks > 0 {
		s.fail("text follows the block of actions, so it does not act; the block must be the last thing you write")
	}
	s.words = true
	lead := s.gap + text[:len(text)-len(body)]
	if !s.started {
		lead, s.started = "", true
	}
	text = strings.TrimRight(body, space)
	s.gap = body[len(text):]
	s.show(lead + text)
}

func (s *splitter) stepBlock(end bool) bool {
	for i := 0; i < len(s.buf); i++ {
		switch c := s.buf[i]; {
		case c == '\\' && s.quoted:
			if i+1 == len(s.buf) && !end {
				s.block.WriteString(s.take(i))
				return false
			}
			i++
		case c == '"':
			s.quoted = !s.quoted
		case c == '<' && !s.quoted:
			kind, size := readTag(s.buf[i:], end)
			switch kind {
			case tagPartial:
				s.block.WriteString(s.take(i))
				return false
			case tagOpen:
				s.fail("a block of actions begins within another, and neither acts; write one, at the end of the text")
			case tagClose:
				s.block.WriteString(s.take(i))
				s.take(size)
				s.content = s.block.String()
				s.block.Reset()
				s.state, s.begun, s.words = inText, true, true
				return true
			}
		}
	}
	s.block.WriteString(s.take(len(s.buf)))
	return false
}

func (s *splitter) stepFence(end bool) bool {
	if !s.begun {
		first := strings.TrimLeft(s.buf, " ")
		if first == "" && !end {
			return false
		}
		if first != "" && (first[0] == s.fence[0] || first[0] == '<') {
			l, whole := s.line(end)
			if !whole {
				return false
			}
			kind, _ := readTag(first, true)
			s.shown = s.shown || kind == tagOpen
			if closesFence(l, s.fence) {
				s.visible(s.take(len(l)))
				s.state = inText
				s.newLine()
				return true
			}
		}
		s.begun = true
	}
	l, _ := s.line(true) // code is shown as it comes
	s.visible(s.take(len(l)))
	if strings.HasSuffix(l, "\n") {
		s.newLine()
	}
	return true
}

// stepHeld looks at whole lines while it is open whether a fence wraps a block.
func (s *splitter) stepHeld(end bool) bool {
	l, whole := s.line(end)
	if !whole {
		return false
	}
	blank := strings.Trim(l, space) == ""
	kind, _ := readTag(strings.TrimLeft(l, space), true)
	switch {
	case blank:
	case s.state == atFence && kind == tagNone:
		s.release()
		s.state, s.shown = inFence, false
		s.newLine()
		return true
	case s.state == atFence:
		s.state = inFenceBlock
	case s.state == inFenceBlock && closesFence(l, s.fence):
		s.state = afterFence
	case s.state == afterFence:
		s.release()
		s.state = inText
		s.newLine()
		return true
	}
	s.held.WriteString(s.take(len(l)))
	return true
}

func (s *splitter) release() {
	text := s.held.String()
	s.held.Reset()
	s.visible(text)
}

// isAction says whether a line outside of a block looks like an action that was
// meant to stand in one.
func (s *splitter) isAction(l string) bool {
	p := lineParser{s: strings.TrimLeft(l, " \t")}
	if !strings.HasPrefix(p.s, "@") {
		return false
	}
	p.at = 1
	name := p.word()
	if !s.known(strings.TrimPrefix(name, "functions.")) {
		return false
	}
	rest := trimLeft(p.s[p.at:])
	if rest == "" || rest[0] == '(' || rest[0] == '{' {
		return true
	}
	p.at = len(p.s) - len(rest)
	return p.word() != "" && strings.HasPrefix(p.s[p.at:], "=")
}
