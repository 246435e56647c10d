package thinker

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"mimikit/core/action"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/memory"
	"mimikit/prompts"
)

// Notes are what is remembered; a *memory.Store is one.
type Notes interface {
	Remember(ctx context.Context, n memory.Note) (memory.Note, channel.Call, error)
	Search(ctx context.Context, c chat.Conversation, speakers []chat.Author, text string, limit int) ([]memory.Note, error)
}

// MemoryActions are remember and search_memory. Who speaks decides what is found,
// and on whose behalf the turn acts, whose note it is.
func MemoryActions(notes Notes) []action.Definition {
	return []action.Definition{
		action.Define(action.Remember, func(ctx context.Context, t action.Turn, a action.Note) (action.Outcome, error) {
			n, call, err := notes.Remember(ctx, memory.Note{
				Scope: a.Scope, Content: a.Content, Author: t.OnBehalfOf, Origin: t.Conversation, At: t.Now,
			})
			if err != nil {
				return action.Outcome{}, action.Mistakef("%v", err)
			}
			return action.Outcome{Effects: []any{Effect{
				Said: "I will remember that (`" + n.ID + "`).",
				Into: func(c *Commit) error {
					c.Effects.Calls = append(c.Effects.Calls, call)
					return nil
				},
			}}}, nil
		}),
		action.Define(action.SearchMemory, func(ctx context.Context, t action.Turn, a action.MemoryQuery) (action.Outcome, error) {
			found, err := notes.Search(ctx, t.Conversation, t.Authors, a.Query, a.Limit)
			if err != nil {
				return action.Outcome{}, err
			}
			if len(found) == 0 {
				return action.Outcome{Answer: "Nothing that is remembered fits this."}, nil
			}
			var lines []string
			for _, n := range found {
				lines = append(lines, fmt.Sprintf("%s (%s, from %s, %s): %s",
					n.ID, n.Scope, cmp.Or(n.Author.Name, n.Author.ID), n.At.Format(time.DateOnly), strings.Join(strings.Fields(n.Content), " ")))
			}
			return action.Outcome{Answer: strings.Join(lines, "\n")}, nil
		}),
	}
}

// remembered are the notes that fit what was said now, for the prompt. Without
// them a turn is poorer and no worse, so an error is only logged.
func (t *Thinker) remembered(ctx context.Context, c *Commit) []prompts.Note {
	if t.o.Notes == nil {
		return nil
	}
	var said []string
	for _, in := range c.Digest.Inputs {
		said = append(said, in.Text)
	}
	found, err := t.o.Notes.Search(ctx, c.Turn.Conversation, c.Turn.Authors, strings.Join(said, "\n"), 0)
	if err != nil {
		t.o.Logger.WarnContext(ctx, "thinker_notes_unread", "conversation", c.Turn.Conversation.Key(), "error", err)
		return nil
	}
	var out []prompts.Note
	for _, n := range found {
		out = append(out, prompts.Note{ID: n.ID, Scope: n.Scope, Author: n.Author, At: n.At, Text: n.Content})
	}
	return out
}
