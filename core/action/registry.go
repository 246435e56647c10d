package action

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mimikit/core/chat"
)

// namePattern is what tool calls and the line syntax both can spell.
var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// A Registry holds all actions there are. It is safe for concurrent use.
type Registry struct {
	all  []*Definition // by name
	name map[string]*Definition
}

// New makes a registry. It refuses names that are taken or that a tool call
// cannot spell, schemas that are none, examples that their own schema refuses,
// and what lacks a description, a kind, an agent or a function. The error names
// all of these at once.
func New(defs ...Definition) (*Registry, error) { return register(true, defs) }

// Outline is New for definitions without functions: it offers and describes
// them, and decodes what is written in their terms, but does nothing.
func Outline(defs ...Definition) (*Registry, error) { return register(false, defs) }

func register(functions bool, defs []Definition) (*Registry, error) {
	r := &Registry{name: map[string]*Definition{}}
	var all []error
	for _, d := range defs {
		d.Agents = slices.Clone(d.Agents)
		d.Examples = slices.Clone(d.Examples)
		if d.Rights == 0 {
			d.Rights = chat.RoleUser
		}
		if err := d.prepare(functions); err != nil {
			all = append(all, fmt.Errorf("register action %q: %w", d.Name, err))
			continue
		}
		if r.name[d.Name] != nil {
			all = append(all, fmt.Errorf("register action %q: the name is taken", d.Name))
			continue
		}
		r.name[d.Name] = &d
		r.all = append(r.all, &d)
	}
	slices.SortFunc(r.all, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range r.all {
		for _, line := range d.Examples {
			if _, err := d.example(line); err != nil {
				all = append(all, fmt.Errorf("register action %q: its example %s: %w", d.Name, line, err))
			}
		}
	}
	if len(all) > 0 {
		return nil, errors.Join(all...)
	}
	return r, nil
}

// prepare checks a definition and compiles its schema.
func (d *Definition) prepare(functions bool) error {
	switch {
	case !namePattern.MatchString(d.Name):
		return errors.New("a name has 1 to 64 characters of a-z, A-Z, 0-9, _ and -")
	case d.fail != nil:
		return d.fail
	case functions && d.call == nil:
		return errors.New("it has no function")
	case strings.TrimSpace(d.Description) == "":
		return errors.New("it has no description")
	case d.Kind < Lookup || d.Kind > End:
		return fmt.Errorf("its kind is %d; allowed are Lookup, Effect and End", d.Kind)
	case d.Rights < chat.RoleUser || d.Rights > chat.RoleAdmin:
		return fmt.Errorf("its rights are %d; allowed are RoleUser, RoleOperator and RoleAdmin", d.Rights)
	case len(d.Agents) == 0:
		return errors.New("no agent may use it")
	}
	for _, a := range d.Agents {
		if !slices.Contains(agents, a) {
			return fmt.Errorf("there is no agent %q; there are %s", a, strings.Join(agents, ", "))
		}
	}
	var err error
	d.rules, err = compile(d.Schema)
	return err
}

// example reads an example.
func (d *Definition) example(line string) (Call, error) {
	lines := parseLines(line)
	if len(lines) != 1 || lines[0].err != nil || lines[0].name != d.Name {
		return Call{}, fmt.Errorf("want one line @%s in the line syntax", d.Name)
	}
	return d.fromLine(lines[0])
}

// For gives what agent may use with these rights, in an order that depends on
// nothing else, so that the provider's prompt cache hits. An agent that does not
// exist may use nothing.
func (r *Registry) For(agent string, rights chat.Role) *Offer {
	o := &Offer{agent: agent, registry: r, name: map[string]*Definition{}}
	for _, d := range r.all {
		if slices.Contains(d.Agents, agent) && rights >= d.Rights {
			o.all = append(o.all, d)
			o.name[d.Name] = d
		}
	}
	return o
}

// Names lists all actions there are.
func (r *Registry) Names() []string {
	var out []string
	for _, d := range r.all {
		out = append(out, d.Name)
	}
	return out
}
