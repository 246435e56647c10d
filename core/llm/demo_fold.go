package llm

import (
	"fmt"
	"slices"
	"strings"
)

// foldWords is the most that a summary has where nothing says.
const foldWords = 400

// fold sums up the lines that leave a history, by counting and cutting: who
// spoke how often, and of each line its beginning. What was summed up before
// stays, the oldest goes first when there is no room. Nothing is understood, so
// a secret is left out by its word.
func (p *demoPrompt) fold() string {
	most := p.words
	if most == 0 {
		most = foldWords
	}
	var names []string
	counts := map[string]int{}
	var points []string
	for _, l := range p.history {
		text := strings.Join(strings.Fields(l.text), " ")
		if l.note == "deleted" || l.note == "stopped" || l.note == "replaced" || text == "" {
			continue
		}
		if counts[l.from]++; counts[l.from] == 1 {
			names = append(names, l.from)
		}
		if secrets().MatchString(text) {
			text = "(something secret was mentioned; it is not kept)"
		}
		points = append(points, fmt.Sprintf("- %s (%s): %s", l.from, minuteOf(l.at), shortLine(text)))
	}
	var b strings.Builder
	var who []string
	for _, n := range names {
		who = append(who, fmt.Sprintf("%s %d", n, counts[n]))
	}
	heading := ""
	if len(who) > 0 {
		heading = fmt.Sprintf("Lines: %s", strings.Join(who, ", "))
	}
	var old []string
	for _, l := range strings.Split(p.summary, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			old = append(old, l)
		}
	}
	// The newest are kept as far as there is room, and the earlier summary before
	// them.
	room := most - len(splitWords(heading))
	kept := slices.Concat(old, []string{heading}, points)
	from := len(kept)
	for from > 0 {
		n := len(splitWords(kept[from-1]))
		if kept[from-1] == heading {
			n = 0 // counted already
		}
		if n > room {
			break
		}
		room -= n
		from--
	}
	if at := len(old); from > at && heading != "" {
		b.WriteString(heading + "\n")
	}
	for _, l := range kept[from:] {
		if l != "" {
			b.WriteString(l + "\n")
		}
	}
	return strings.TrimSpace(b.String())
}

// minuteOf writes the time of a line as people read it.
func minuteOf(at string) string {
	if len(at) < len("2006-01-02T15:04") {
		return at
	}
	return strings.Replace(at[:len("2006-01-02T15:04")], "T", " ", 1)
}

// shortLine is a line's first sentence and, when there are more, its last.
func shortLine(text string) string {
	var all []string
	for _, s := range sentence().FindAllString(text, -1) {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	if len(all) < 3 || len(text) < 160 {
		return clip(text, 200)
	}
	return clip(all[0], 120) + " … " + clip(all[len(all)-1], 120)
}
