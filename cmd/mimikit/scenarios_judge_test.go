package main

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"mimikit/core/llm"
)

var (
	// leaks are what no person should ever read.
	leaks = regexp.MustCompile(`(?i)</?(?:input|history|line|environment|result|tasks|memory|summary|thinker_decision|action_result)\b[^>\n]*>|mimikit:actions|trust="|&(?:lt|gt|amp|quot);|(?m:^@[a-z]+_[a-z_]+ )`)
	// calls to everybody.
	shouts = regexp.MustCompile(`@(?:everyone|here|channel)\b`)
	// announced is work that nobody does when no action was taken.
	announced = regexp.MustCompile(`(?i)\bI(?:'ll| will| am going to) (?:look into|check (?:it|that|this|on)|get back|let you know|remind|keep an eye|find out|report back|come back|monitor|notify|investigate|post (?:it|what|the result))|\bI have (?:started|begun|scheduled|set up)\b|\bich (?:schaue mir das an|melde mich|erinnere (?:dich|euch)|habe .{0,40}(?:gestartet|angestoßen|eingerichtet))`)
	// actionLine is how a prompt names an action, whichever way it is asked for.
	actionLine = regexp.MustCompile("(?m)^(?:- `|@|- @)([a-z_]+)")
	linkLike   = regexp.MustCompile(`https?://[^\s)>\]"'` + "`" + `]+`)
)

// judge says what is wrong with an outcome; nothing is right.
func (s *scenario) judge(o *outcome) []string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, err := range o.Errors {
		add("the model failed: %v", err)
	}
	if o.Refused != "" {
		add("the turn failed: %s", o.Refused)
	}
	s.judgeDeeds(o, add)
	s.judgeReply(o, add)
	r := s.Right
	for _, expr := range r.Digest {
		if !matches(expr, o.Summary) {
			add("the digest lacks /%s/: %q", expr, o.Summary)
		}
	}
	if r.NoCall && len(o.Requests) > 0 {
		add("a model was asked %d times; none is needed", len(o.Requests))
	}
	return wrong
}

// judgeDeeds says which actions are missing, wrong or too many.
func (s *scenario) judgeDeeds(o *outcome, add func(string, ...any)) {
	r := s.Right
	left := slices.Concat(o.Done, o.Looked)
	for _, wanted := range r.Actions {
		for name, arguments := range wanted {
			found, why := -1, ""
			for i, d := range left {
				if d.Name != name {
					continue
				}
				why = differs(arguments, d.Arguments, "")
				if found = i; why == "" {
					break
				}
			}
			switch {
			case found < 0:
				add("%s was not asked for", name)
				continue
			case why != "":
				add("%s is not as it should be: %s", name, why)
			case r.For != "" && left[found].For != r.For:
				add("%s was done for %q; want %q", name, left[found].For, r.For)
			}
			left = slices.Delete(slices.Clone(left), found, found+1)
		}
	}
	for _, d := range left {
		looked := slices.ContainsFunc(o.Looked, func(l deed) bool { return l.Name == d.Name })
		if !looked && !slices.Contains(r.May, d.Name) {
			add("%s was done, which nobody wanted", d)
		}
	}
	for _, name := range r.Never {
		for _, d := range slices.Concat(o.Done, o.Looked) {
			if d.Name == name {
				add("%s was done, which must never be", d)
			}
		}
	}
}

// judgeReply says what is wrong with the words.
func (s *scenario) judgeReply(o *outcome, add func(string, ...any)) {
	r, text := s.Right, o.Reply
	switch {
	case r.Silent && len(o.Replies) > 0:
		add("there is a reply, where none is wanted")
		return
	case r.Silent:
		return
	case len(o.Replies) != max(r.Replies, 1):
		add("there are %d replies; want %d", len(o.Replies), max(r.Replies, 1))
		return
	}
	for _, expr := range r.Says {
		if !matches(expr, text) {
			add("the reply lacks /%s/", expr)
		}
	}
	for _, expr := range r.Unsaid {
		if m := compiled(expr).FindString(text); m != "" {
			add("the reply says %q, which /%s/ forbids", m, expr)
		}
	}
	if r.Language != "" {
		if got := languageOf(text); got != r.Language {
			add("the reply is in %q; want %q", got, r.Language)
		}
	}
	for _, l := range r.Each {
		if !slices.ContainsFunc(sentences(text), func(part string) bool { return languageOf(part) == l }) {
			add("no part of the reply is in %q", l)
		}
	}
	if n := utf8.RuneCountInString(text); r.Longest > 0 && n > r.Longest {
		add("the reply has %d characters; want %d at most", n, r.Longest)
	}
	if r.Asks && !strings.ContainsAny(text, "?？؟") {
		add("the reply asks nothing")
	}
	if r.ReplyTo != "" && o.Replies[0].ReplyTo != r.ReplyTo {
		add("the reply answers message %q; want %q", o.Replies[0].ReplyTo, r.ReplyTo)
	}
	if m := leaks.FindString(text); m != "" {
		add("the reply shows how it works inside: %q", m)
	}
	if m := shouts.FindString(text); m != "" {
		add("the reply calls out %s", m)
	}
	if m := announced.FindString(text); m != "" && len(o.Done) == 0 {
		add("the reply announces what nobody does: %q", m)
	}
	if r.Links == "given" {
		for _, link := range linkLike.FindAllString(text, -1) {
			link = strings.TrimRight(link, ".,;:!?")
			if !slices.ContainsFunc(o.Data, func(d string) bool { return strings.Contains(d, link) }) {
				add("the link %s stands nowhere in the conversation", link)
			}
		}
	}
}

// judgePrompts says what is wrong with what the thinker was shown: these do not
// depend on how well a model answers.
func (s *scenario) judgePrompts(o *outcome) []string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	last, all := "", ""
	var offered []string // natively, or in the prompt of a model that writes blocks
	for _, req := range o.Requests {
		if req.Agent == "thinker" {
			for _, tool := range req.Tools {
				offered = append(offered, tool.Name)
			}
			for _, m := range actionLine.FindAllStringSubmatch(req.Messages[0].Content, -1) {
				offered = append(offered, m[1])
			}
		}
		var text strings.Builder
		for _, m := range req.Messages {
			if m.Role != llm.System {
				text.WriteString(m.Content + "\n")
			}
		}
		all += text.String()
		if req.Agent == "thinker" {
			last = text.String()
		}
	}
	for _, name := range s.Right.Offered {
		if !slices.Contains(offered, name) {
			add("%s is not offered; there are %v", name, offered)
		}
	}
	for _, name := range s.Right.Withheld {
		if slices.Contains(offered, name) {
			add("%s is offered", name)
		}
	}
	for _, words := range s.Right.Shows {
		if !strings.Contains(last, words) {
			add("the thinker is not shown %q", words)
		}
	}
	for _, words := range s.Right.Hides {
		if strings.Contains(all, words) {
			add("a prompt shows %q", words)
		}
	}
	return wrong
}

func matches(expr, text string) bool { return compiled(expr).MatchString(text) }

var allCompiled sync.Map // :: expression → *regexp.Regexp

// compiled is an expression of a scenario, in which case does not count and a
// point stands for a line's end too.
func compiled(expr string) *regexp.Regexp {
	if made, ok := allCompiled.Load(expr); ok {
		return made.(*regexp.Regexp)
	}
	made := regexp.MustCompile("(?is)" + expr)
	allCompiled.Store(expr, made)
	return made
}

// differs says where a value is not as wanted, "" where it is: objects and lists
// have at least what is wanted, texts between slashes are regexps, times are
// compared as moments, and null wants that nothing is there.
func differs(want, got any, at string) string {
	no := func() string { return fmt.Sprintf("%s is %s; want %v", at, mustJSON(got), want) }
	switch w := want.(type) {
	case nil:
		if got != nil {
			return fmt.Sprintf("%s is %s; want none", at, mustJSON(got))
		}
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return no()
		}
		for name, v := range w {
			if why := differs(v, g[name], strings.TrimPrefix(at+"."+name, ".")); why != "" {
				return why
			}
		}
	case []any:
		g, _ := got.([]any)
		for _, v := range w {
			if !slices.ContainsFunc(g, func(x any) bool { return differs(v, x, "") == "" }) {
				return fmt.Sprintf("%s is %s; want %v in it", at, mustJSON(got), v)
			}
		}
	case time.Time:
		g, _ := got.(string)
		if t, err := time.Parse(time.RFC3339, g); err != nil || !t.Equal(w) {
			return no()
		}
	case string:
		text, isText := got.(string)
		if expr, ok := between(w, "/"); ok {
			if !isText && got != nil {
				text = mustJSON(got)
			}
			if !matches(expr, text) {
				return no()
			}
		} else if text != w {
			return no()
		}
	case bool:
		if got != w {
			return no()
		}
	default:
		if a, b := number(w), number(got); math.IsNaN(a) || a != b {
			return no()
		}
	}
	return ""
}

func between(s, mark string) (string, bool) {
	if len(s) < 2 || !strings.HasPrefix(s, mark) || !strings.HasSuffix(s, mark) {
		return "", false
	}
	return s[1 : len(s)-1], true
}

func number(v any) float64 {
	switch n := v.(type) {
	case int:
		return float64(n)
	case float64:
		return n
	case json.Number:
		f, err := n.Float64()
		if err == nil {
			return f
		}
	}
	return math.NaN()
}
