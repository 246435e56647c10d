package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/core/chat"
	"mimikit/core/fold"
	"mimikit/core/history"
	"mimikit/core/llm"
	"mimikit/prompts"
)

// summaryWords bounds a running summary, as the model is told.
const summaryWords = 400

// folding keeps histories short with the teller's model; nil where that is off, and
// where the model is one that only stands for itself.
func (a *App) folding(hist *history.Store, set *prompts.Set, model llm.Model, m *chosenModel) (*fold.Folder, error) {
	if !a.cfg.History.Fold || m.alone {
		return nil, nil
	}
	name := m.name(a.cfg.LLM.Models.Teller)
	return fold.New(fold.Options{
		Histories: hist, Model: name, Logger: a.log,
		Lines: a.cfg.History.FoldLines, Tokens: a.cfg.History.FoldTokens, Keep: a.cfg.History.Keep,
		Summarize: func(ctx context.Context, conversation, previous string, lines []chat.Line) (string, error) {
			p, err := set.Compose("fold", prompts.Data{
				Bot: a.cfg.Name, Summary: previous, History: lines,
				Limits: []prompts.Fact{{Name: "words", Value: strconv.Itoa(summaryWords)}},
			})
			if err != nil {
				return "", err
			}
			req := llm.Request{Agent: "fold", Model: name, Messages: p.Messages(), Conversation: conversation}
			if c, err := chat.ParseConversation(conversation); err == nil {
				req.Place, req.Workspace = c.PlaceKey(), c.WorkspaceKey()
			}
			r, err := model.Complete(ctx, req)
			return strings.TrimSpace(r.Text), err
		},
	})
}

// keepHouse runs what tidies up beside the node: the fold of histories, bookings
// that Redis had not taken, and archives that are over their age.
func (a *App) keepHouse(ctx context.Context, g *errgroup.Group) {
	if a.folder != nil {
		g.Go(func() error { return a.folder.Run(ctx) })
	}
	if a.ledger != nil {
		g.Go(func() error { return a.ledger.Run(ctx) })
	}
	if a.model != "" && a.cfg.Archive.Calls {
		g.Go(func() error {
			for {
				if days, err := llm.CleanArchive(a.callArchive(), a.cfg.Archive.Keep, time.Now()); err != nil {
					a.log.Warn("archive_not_cleaned", "error", err)
				} else if days > 0 {
					a.log.Info("archive_cleaned", "days", days)
				}
				if pauseFor(ctx, time.Hour) != nil {
					return nil
				}
			}
		})
	}
}
