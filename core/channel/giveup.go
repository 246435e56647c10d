package channel

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"
)

// giveUp moves the work's entries to the dead letters and, unless that is of no
// use, tells whoever asked, in one op.
func (o *owner) giveUp(r *run, reason string, quiet bool) {
	if r.step == nil {
		o.announce(r) // it was not even begun
	}
	o.tell(r, "dead")
	o.n.log.Error("step_given_up", "loop", r.loop.Name, "partition", o.p, "conversation", r.c.key,
		"entry", r.work.Entries[0].ID, "attempts", r.work.Attempt-1, "reason", reason)
	o.n.steps.Go(func() {
		raw, err := o.raw(r.ctx, r.work.Entries)
		if err != nil {
			o.hand(func() { o.retry(r, fmt.Errorf("read what is to be given up: %w", err)) })
			return
		}
		var effects Effects
		var letters []letter
		if r.loop.Failed != nil && r.c.key != "" && !quiet {
			err := safely(r, func() (err error) {
				effects = r.loop.Failed(wholeWork(r.work, raw), reason)
				letters, err = o.letters(r, effects)
				return err
			})
			if err != nil {
				// Given up in silence rather than never: the entries would come back
				// to every node.
				o.n.log.Error("failure_not_told", "loop", r.loop.Name, "partition", o.p, "conversation", r.c.key, "error", err)
				effects, letters = Effects{}, nil
			}
		}
		for i, e := range r.work.Entries {
			if raw[i] != nil {
				letters = append(letters, deadLetter(e, raw[i], r, reason))
			}
		}
		o.hand(func() { o.bury(r, effects, letters) })
	})
}

// wholeWork is the work with the payloads of entries that were held by id only.
// Those are copies, since the entries themselves belong to the owner.
func wholeWork(w *Work, raw []map[string]string) *Work {
	whole := *w
	whole.Entries = slices.Clone(w.Entries)
	for i, e := range whole.Entries {
		if e.Value == nil && e.bad == nil && raw[i] != nil {
			whole.Entries[i] = readEntry(e.Channel, e.ID, raw[i], roads[roadNumber(e.Channel)-1].decode)
		}
	}
	return &whole
}

// bury commits what giveUp gathered, without a gate: a failure is told even to
// one who said stop. When Redis refuses the op because of the history, the
// entries are buried without it, or the conversation would never get past them.
func (o *owner) bury(r *run, effects Effects, letters []letter) {
	o.commit(r, "", effects, letters)
	if len(effects.History) == 0 {
		return
	}
	last := o.ops[len(o.ops)-1]
	done := last.done
	last.done = func(a answer) {
		if a.status != opRefused {
			done(a)
			return
		}
		o.n.log.Error("history_refused", "partition", o.p, "conversation", r.c.key, "error", a.err)
		effects.History = nil
		o.commit(r, "", effects, letters)
	}
}

// deadLetter spells a dead letter: why, and then the entry as it was.
func deadLetter(e *Entry, raw map[string]string, r *run, reason string) letter {
	group := roads[roadNumber(e.Channel)-1].group
	fields := []string{
		deadFrom, string(e.Channel), deadGroup, group, deadReason, reason,
		deadCount, strconv.Itoa(max(r.work.Attempt-1, 0)), deadEntry, e.ID,
		deadAt, r.work.Now.UTC().Format(time.RFC3339),
	}
	size := 0
	names := make([]string, 0, len(raw))
	for name, value := range raw {
		names = append(names, name)
		size += len(value)
	}
	sort.Strings(names)
	for _, name := range names {
		fields = append(fields, name, raw[name])
	}
	return letter{to: dead, fields: fields, size: size}
}
