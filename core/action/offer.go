package action

import (
	"slices"
	"strings"

	"mimikit/core/llm"
)

// An Offer is what one agent may use in one turn. It is safe for concurrent use.
type Offer struct {
	agent    string
	registry *Registry
	all      []*Definition // by name
	name     map[string]*Definition
}

// Empty says that there is nothing to use.
func (o *Offer) Empty() bool { return len(o.all) == 0 }

// Names lists what may be used.
func (o *Offer) Names() []string {
	var out []string
	for _, d := range o.all {
		out = append(out, d.Name)
	}
	return out
}

// Tools gives the actions as native tools.
func (o *Offer) Tools() []llm.Tool {
	var out []llm.Tool
	for _, d := range o.all {
		out = append(out, llm.Tool{Name: d.Name, Description: d.native(), Schema: slices.Clone(d.Schema)})
	}
	return out
}

// ends gives the part of the offer that ends a run.
func (o *Offer) ends() *Offer {
	out := &Offer{agent: o.agent, registry: o.registry, name: map[string]*Definition{}}
	for _, d := range o.all {
		if d.Kind == End {
			out.all = append(out.all, d)
			out.name[d.Name] = d
		}
	}
	return out
}

// endNames lists what ends a run, for a sentence.
func (o *Offer) endNames() string { return strings.Join(o.ends().Names(), " or ") }

// mustEnd says that a run ends with an action and not with text.
func (o *Offer) mustEnd() bool {
	return slices.ContainsFunc(o.all, func(d *Definition) bool { return d.Kind == End })
}

// lastCounts says that of several steps in a block only the last valid one is
// taken: a worker thinks aloud before it settles on its next step.
func (o *Offer) lastCounts() bool { return o.agent == WorkerStandard }

// find gives the definition of a name. The prefix "functions." is what some
// models put before every tool; no action has a dot in its name.
func (o *Offer) find(name string) (*Definition, error) {
	name = strings.TrimPrefix(name, "functions.")
	if d := o.name[name]; d != nil {
		return d, nil
	}
	if d := o.registry.name[name]; d != nil && slices.Contains(d.Agents, o.agent) {
		return nil, Mistakef("%s needs the role %s, which not everybody in this turn has", name, d.Rights)
	}
	if len(o.all) == 0 {
		return nil, Mistakef("there is no action %s; there are none in this turn", excerpt(name))
	}
	if near := nearest(name, o.Names()); len(near) > 0 {
		return nil, Mistakef("there is no action %s; is it %s?", excerpt(name), strings.Join(near, " or "))
	}
	return nil, Mistakef("there is no action %s; there are %s", excerpt(name), strings.Join(o.Names(), ", "))
}
