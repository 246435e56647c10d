package action

// DecodeBlock parts a text into what people see and the calls of the block at
// its end, in the order in which they stand there. The rules, which keep words
// that are merely quoted from acting:
//
//   - A block acts when there is exactly one, its opening tag stands at the start
//     of a line, it is closed, and nothing but white space follows it.
//   - Within a code fence, in `code`, and in a value's quotes, a tag is text. A
//     fence at the very end that begins with a block, and one that holds a block
//     and is not closed, are mistakes, since nobody can tell what was meant.
//   - In any other place, twice, not closed or misspelt, a block is a mistake and
//     none of its actions is taken. So is a line outside of a block that reads
//     like one of the registry's actions.
//   - A line that breaks the syntax is a mistake; those before it count, and
//     nothing behind it is read.
//
// A mistake of the block as a whole is one Decoded without a name. What people
// see holds no block but one in code. For an agent of which the
// last valid step counts, the worker, only that one is given, and mistakes only
// when no step is valid.
func (o *Offer) DecodeBlock(text string) (clean string, calls []Decoded) {
	var seen []byte
	s := o.splitter(func(t string) { seen = append(seen, t...) })
	s.write(text)
	content, err := s.close()
	clean = string(seen)
	if err != nil {
		return clean, []Decoded{{Err: err}}
	}
	for _, l := range parseLines(content) {
		calls = append(calls, o.decodeLine(l))
	}
	if o.lastCounts() {
		for i := len(calls) - 1; i >= 0; i-- {
			if calls[i].Err == nil {
				return clean, calls[i : i+1]
			}
		}
	}
	return clean, calls
}

func (o *Offer) splitter(show func(string)) *splitter {
	return &splitter{show: show, known: func(name string) bool { return o.registry.name[name] != nil }}
}

func (o *Offer) decodeLine(l line) Decoded {
	c := Call{Name: l.name, Raw: l.raw}
	if l.err != nil {
		return Decoded{c, l.err}
	}
	d, err := o.find(l.name)
	if err != nil {
		return Decoded{c, err}
	}
	c, err = d.fromLine(l)
	return Decoded{c, err}
}

// A Filter passes a streamed text on without the block at its end, whatever the
// pieces are that it comes in. All that it passes on is what DecodeBlock calls
// clean. It is used from one goroutine.
type Filter struct{ s *splitter }

// Filter gives a filter that passes text on to show.
func (o *Offer) Filter(show func(text string)) *Filter { return &Filter{o.splitter(show)} }

// Write takes the next piece.
func (f *Filter) Write(text string) { f.s.write(text) }

// Close passes on what was held back and is no block after all.
func (f *Filter) Close() { _, _ = f.s.close() } // a mistake is found when the whole text is decoded
