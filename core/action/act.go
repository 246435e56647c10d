package action

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
)

// A reply is what the model is told about a call.
type reply struct {
	text  string
	wrong bool // it is an error
	waits bool // the model waits for it
}

// act deals with the calls of a round, in their order.
func (r *run) act(ctx context.Context, calls []Decoded, last bool) (replies []reply, ended bool, err error) {
	end := -1 // the end that counts
	for i, c := range calls {
		if d := r.offer.name[c.Call.Name]; c.Err == nil && d != nil && d.Kind == End {
			end = i
		}
	}
	for i, c := range calls {
		s := Step{Round: r.result.Rounds, Call: c.Call, OnBehalfOf: r.turn.OnBehalfOf}
		d := r.offer.name[c.Call.Name]
		if d != nil {
			s.Kind = d.Kind
		}
		var p reply
		switch {
		case last && s.Kind != End:
			s.Verdict = NotOffered
		case ended, s.Kind == End && c.Err == nil && i < end:
			s.Verdict = Superseded
		case c.Err != nil:
			s.Verdict, s.Error = Mistaken, c.Err.Error()
		case i >= r.b.Calls && i != end:
			s.Verdict, s.Error = Mistaken, Mistakef("%s: more than %d actions in one go; ask for it in the next", d.Name, r.b.Calls).Text
		case s.Kind == Effect && r.taken[d.Name+string(c.Call.Arguments)]:
			s.Verdict = Repeated
			p.text = "this was taken already in this turn; it is done once"
		default:
			var out Outcome
			if out, err = r.do(ctx, d, &s); err != nil {
				r.note(ctx, s)
				return replies, ended, err
			}
			ended = s.Verdict == Done && (out.End || s.Kind == End)
			p.text = bounded(out.Answer, r.b.Answer)
			p.waits = s.Verdict == Done && (s.Kind == Lookup || out.Answer != "")
		}
		if s.Error != "" {
			p = reply{text: s.Error, wrong: true, waits: true}
		}
		r.note(ctx, s)
		replies = append(replies, p)
	}
	return replies, ended, nil
}

func (r *run) note(ctx context.Context, s Step) {
	r.result.Trail = append(r.result.Trail, s)
	if r.b.Hooks.Done != nil {
		r.b.Hooks.Done(ctx, s)
	}
}

// do calls the function of an action and keeps what came of it. The error is the
// context's alone.
func (r *run) do(ctx context.Context, d *Definition, s *Step) (Outcome, error) {
	if r.b.Hooks.Start != nil {
		r.b.Hooks.Start(ctx, *s)
	}
	out, err := d.do(ctx, r.turn, s.Call)
	if ctx.Err() != nil {
		s.Verdict = Failed
		return out, context.Cause(ctx)
	}
	if err == nil {
		s.Verdict, s.Answer = Done, len(out.Answer)
		if d.Kind == Effect {
			r.taken[d.Name+string(s.Call.Arguments)] = true
		}
		if d.Kind == Lookup {
			r.readText(out.Answer)
		}
		if d.Kind == Effect || len(out.Effects) > 0 {
			r.result.Effects = append(r.result.Effects, Wanted{Call: s.Call, OnBehalfOf: r.turn.OnBehalfOf, Values: slices.Clone(out.Effects)})
		}
		if out.End || d.Kind == End {
			r.result.Ended = s.Call
		}
		return out, nil
	}
	var m *Mistake
	var p *panicked
	switch {
	case errors.As(err, &m):
		s.Verdict, s.Error = Mistaken, d.Name+": "+m.Text
		return Outcome{}, nil
	case errors.As(err, &p):
		if r.b.Hooks.Panicked != nil {
			r.b.Hooks.Panicked(ctx, *s, p.value, p.stack)
		}
	case r.b.Hooks.Failed != nil:
		r.b.Hooks.Failed(ctx, *s, err)
	}
	s.Verdict, s.Error = Failed, d.Name+": it could not be done just now; the call is right, and the reason is on our side"
	return Outcome{}, nil
}

// Do checks a call once more, its name, rights and arguments, and calls its
// function. It is for calls that do not come from [Run]: those of a checkpoint
// or of a button. A panic of the function is an error.
func (o *Offer) Do(ctx context.Context, t Turn, c Call) (Outcome, error) {
	d, err := o.find(c.Name)
	if err != nil {
		return Outcome{}, err
	}
	v, err := parseJSON(string(c.Arguments))
	if err != nil {
		return Outcome{}, Mistakef("%s: %s", d.Name, err)
	}
	if c.Arguments, err = d.arguments(v); err != nil {
		return Outcome{}, err
	}
	return d.do(ctx, t, c)
}

// panicked is a function that panicked.
type panicked struct {
	name  string
	value any
	stack []byte
}

func (p *panicked) Error() string { return p.name + " panicked" }

func (d *Definition) do(ctx context.Context, t Turn, c Call) (out Outcome, err error) {
	if t.Rights < d.Rights {
		return Outcome{}, Mistakef("it needs the role %s, which not everybody in this turn has", d.Rights)
	}
	if d.call == nil {
		return Outcome{}, errors.New(d.Name + " is an outline and has no function")
	}
	defer func() {
		if v := recover(); v != nil {
			out, err = Outcome{}, &panicked{d.Name, v, debug.Stack()}
		}
	}()
	return d.call(ctx, t, c.Arguments)
}
