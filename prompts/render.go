package prompts

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Render gives one file of an agent's folder ("teller", "voice") filled with
// data, which is a [View] unless an override says otherwise. Space around it is
// trimmed.
func (s *Set) Render(agent, file string, data any) (string, error) {
	if v, ok := data.(View); ok {
		return s.render(agent, file, &v)
	}
	return s.execute(agent, file, data)
}

// render is Render by the file's program, where it has one.
func (s *Set) render(agent, file string, v *View) (string, error) {
	if p := s.programs[place{agent, file}]; p != nil {
		return strings.TrimSpace(p.run(v)), nil
	}
	return s.execute(agent, file, *v)
}

// execute is Render by text/template.
func (s *Set) execute(agent, file string, data any) (string, error) {
	if !slices.Contains(files[agent], file) {
		return "", fmt.Errorf("render prompt %s/%s: no such prompt; there are %s", agent, file, strings.Join(allowed(), ", "))
	}
	var b strings.Builder
	if err := s.all.ExecuteTemplate(&b, agent+"/"+file, data); err != nil {
		return "", fmt.Errorf("render prompt %s/%s: %w", agent, file, err)
	}
	return strings.TrimSpace(b.String()), nil
}

// A place is where a file stands.
type place struct{ agent, file string }

// translate makes a program of every file that has one.
func (s *Set) translate() {
	s.programs = map[place]*program{}
	for agent, names := range files {
		for _, file := range names {
			if p := translate(s.tree(agent+"/"+file), s.tree); p != nil {
				s.programs[place{agent, file}] = p
			}
		}
	}
}

// setting is all that a system part can depend on when its program is stable.
type setting struct {
	place
	bot, actions string
	mode         Mode
	final        bool
}

// maxRendered bounds the system parts that are kept. A deployment has a handful.
const maxRendered = 64

// rendered keeps system parts: ten kilobytes that are the same in every turn.
type rendered struct {
	mu    sync.RWMutex
	texts map[setting]string
}

// system renders a system part, or gives it as it was rendered before.
func (s *Set) system(agent, file string, v *View) (string, error) {
	at := place{agent, file}
	if p := s.programs[at]; p == nil || !p.stable {
		return s.render(agent, file, v)
	}
	key := setting{at, v.Bot, v.Actions, v.Mode, v.Final}
	s.systems.mu.RLock()
	text, ok := s.systems.texts[key]
	s.systems.mu.RUnlock()
	if ok {
		return text, nil
	}
	text, err := s.render(agent, file, v)
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
