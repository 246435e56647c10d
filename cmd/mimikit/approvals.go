package main

import (
	"context"
	"fmt"
	"regexp"

	"mimikit/config"
	"mimikit/core/audit"
	"mimikit/core/chat"
	"mimikit/core/question"
	"mimikit/core/supervisor"
	"mimikit/core/worker"
)

// approvals are what tasks ask for before they do it. Where that is nothing, an answer
// may still come to what was asked before the settings were changed.
func (a *App) approvals() (*worker.Approvals, error) {
	c := a.cfg.Approvals
	out := &worker.Approvals{Tools: c.Tools, Record: a.recordApproval}
	for _, pattern := range c.Commands {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("read approvals.commands: %w", err)
		}
		out.Commands = append(out.Commands, re)
	}
	return out, nil
}

// approvers say who decides.
func approvers(c config.Approvals) supervisor.Approvals {
	out := supervisor.Approvals{Timeout: c.Timeout}
	switch c.By {
	case config.ByOperator:
		out.By = chat.RoleOperator
	case config.ByAdmin:
		out.By = chat.RoleAdmin
	}
	return out
}

// recordApproval keeps what was decided, and by whom.
func (a *App) recordApproval(ctx context.Context, d worker.Decision) error {
	result := "allowed: " + d.Answer
	if !d.Allowed {
		result = "refused"
		if d.By.Bot {
			result += ": nobody answered in time"
		}
	}
	return a.trail.Record(ctx, audit.Act{
		Who: d.By, Where: d.Task.Conversation, Door: d.Task.Conversation.Platform, What: "approve: " + d.What, Target: d.Task.ID, Result: result + " (sha256 " + d.Digest + ")",
	})
}

// notAsked keeps that somebody wanted to answer whom nobody asked. That it cannot be
// kept changes nothing: they were refused.
func (a *App) notAsked(ctx context.Context, who chat.Author, q question.Question) {
	err := a.trail.Record(context.WithoutCancel(ctx), audit.Act{
		Who: who, Where: q.Conversation, Door: q.Conversation.Platform, What: "answer " + q.ID, Target: q.ID, Result: "refused",
	})
	if err != nil {
		a.log.ErrorContext(ctx, "act_not_audited", "user", who.ID, "target", q.ID, "result", "refused", "error", err)
	}
}
