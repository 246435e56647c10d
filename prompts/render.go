package prompts

import (
	"fmt"
	"strings"
	"sync"
)

// render fills a file by its program, where it has one.
func (s *Set) render(at place, v *View) (string, error) {
	if p := s.programs[at]; p != nil {
		return strings.TrimSpace(p.run(v)), nil
	}
	return s.execute(at, *v)
}

// execute fills a file by text/template.
func (s *Set) execute(at place, data any) (string, error) {
	var b strings.Builder
	if err := s.all.ExecuteTemplate(&b, at.name(), data); err != nil {
		return "", fmt.Errorf("render prompt %s: %w", at.name(), err)
	}
	return strings.TrimSpace(b.String()), nil
}

// translate makes a program of every file that has one.
func (s *Set) translate() {
	s.programs = map[place]*program{}
	for _, at := range places() {
		if p := translate(s.tree(at.name()), s.tree); p != nil {
			s.programs[at] = p
		}
	}
}

// setting is all that a system part can depend on when its programs are stable.
type setting struct {
	agent, bot, actions string
	mode                Mode
	final               bool
}

// maxRendered bounds the system parts that are kept. A deployment has a handful.
const maxRendered = 64

// rendered keeps system parts: ten kilobytes that are the same in every turn.
type rendered struct {
	mu    sync.RWMutex
	texts map[setting]string
}

// system renders an agent's system part, or gives it as it was rendered before.
func (s *Set) system(name string, a *agent, v *View) (string, error) {
	for _, file := range a.system {
		if p := s.programs[place{a.role, file}]; p == nil || !p.stable {
			return s.joined(a, v)
		}
	}
	key := setting{name, v.Bot, v.Actions, v.Mode, v.Final}
	s.systems.mu.RLock()
	text, ok := s.systems.texts[key]
	s.systems.mu.RUnlock()
	if ok {
		return text, nil
	}
	text, err := s.joined(a, v)
	if err != nil {
		return "", err
	}
	s.systems.mu.Lock()
	defer s.systems.mu.Unlock()
	if s.systems.texts == nil || len(s.systems.texts) >= maxRendered {
		s.systems.texts = map[setting]string{}
	}
	s.systems.texts[key] = text
	return text, nil
}

// joined renders the files of a system part, a blank line between them.
func (s *Set) joined(a *agent, v *View) (string, error) {
	var parts []string
	for _, file := range a.system {
		text, err := s.render(place{a.role, file}, v)
		if err != nil {
			return "", err
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n"), nil
}
