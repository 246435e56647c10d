package teller

import (
	"slices"
	"time"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/history"
)

// Gathered is what inputs and results come down to once edits and deletes have
// done their work.
type gathered struct {
	inputs  []chat.UserInput // to be answered, by platform time
	ids     []string         // of these and of the edits folded into them
	context []chat.Line      // heard, not asked: for the history only
	results []chat.TaskResult
}

// author is whose digest it is: who spoke last, or who asked for what came back.
func (g *gathered) author() chat.Author {
	if in := newestInput(g.inputs); in != nil {
		return in.Author
	}
	if n := len(g.results); n > 0 {
		return g.results[n-1].Requester
	}
	return chat.Author{}
}

// A talk is one message of the platform and what became of it.
type talk struct {
	base, edit, deletion *chat.UserInput // edit is the last one
	addressed            bool            // by the message or by any of its edits
	edits                []string        // ids of all edits
	at                   time.Time
}

// gather folds the inputs and results among entries. An edit replaces the text
// of a message that is here too, a delete takes it away; both count from
// whatever side of the message they arrive, since catching up on a gap can
// bring them first. An edit of a message that was dealt with before is context,
// unless the listener marked it as addressed: then the edit is what first
// mentions the bot.
//
// Entries that hold neither an input nor a result are returned as second value.
func gather(entries []*channel.Entry) (gathered, []*channel.Entry) {
	var (
		g     gathered
		odd   []*channel.Entry
		talks []*talk
		byMsg = map[string]*talk{} // platform message id → its talk
	)
	for _, e := range entries {
		switch v := e.Value.(type) {
		case *chat.UserInput:
			t := byMsg[v.Message]
			alone := v.Message == "" || v.Kind == chat.KindAnswer || v.Kind == chat.KindStop
			if alone || t == nil || (isSaid(v) && t.base != nil) {
				t = &talk{at: v.At}
				if t.at.IsZero() {
					t.at = e.At()
				}
				talks = append(talks, t)
				if !alone {
					byMsg[v.Message] = t
				}
			}
			t.add(v)
		case *chat.TaskResult:
			g.results = append(g.results, *v)
		default:
			odd = append(odd, e)
		}
	}
	slices.SortStableFunc(talks, func(a, b *talk) int { return a.at.Compare(b.at) })
	for _, t := range talks {
		t.into(&g)
	}
	return g, odd
}

// isSaid tells a message or an answer from what changes one.
func isSaid(in *chat.UserInput) bool {
	return in.Kind != chat.KindEdit && in.Kind != chat.KindDelete
}

func (t *talk) add(in *chat.UserInput) {
	switch in.Kind {
	case chat.KindDelete:
		t.deletion = in
		return
	case chat.KindEdit:
		t.edit, t.edits = in, append(t.edits, in.ID)
	default:
		t.base = in
		if !in.At.IsZero() {
			t.at = in.At
		}
	}
	// An answer to a question of ours is meant for us wherever it was given.
	t.addressed = t.addressed || in.Addressed || in.Kind == chat.KindAnswer
}

// into adds what the talk comes down to.
func (t *talk) into(g *gathered) {
	switch {
	case t.deletion != nil && t.base != nil:
		return // taken back before anybody answered it
	case t.deletion != nil:
		g.context = append(g.context, history.InputLine(*t.deletion))
		return
	}
	in, ids := chat.UserInput{}, t.edits
	if t.base == nil {
		in = *t.edit
	} else {
		in, ids = *t.base, append([]string{t.base.ID}, t.edits...)
		if t.edit != nil {
			in.Text, in.TextBlob, in.TextSize, in.Edit = t.edit.Text, t.edit.TextBlob, t.edit.TextSize, t.edit.Edit
			if len(t.edit.Attachments) > 0 { // not every platform repeats the files with an edit
				in.Attachments = t.edit.Attachments
			}
		}
	}
	if in.Addressed = t.addressed; !in.Addressed || in.Kind == chat.KindStop {
		g.context = append(g.context, history.InputLine(in))
		return
	}
	g.inputs = append(g.inputs, in)
	g.ids = append(g.ids, ids...)
}
