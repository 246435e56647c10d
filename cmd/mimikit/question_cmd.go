package main

import (
	"context"
	"strings"
)

// questionsCmd is `mimikit questions`.
type questionsCmd struct {
	Whose string `arg:"" optional:"" default:"all" enum:"mine,all" help:"Whose questions: ${enum}. Default: ${default}."`
	asJSON
}

// Run lists open questions.
func (c *questionsCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return order(ctx, std, s, c.asJSON, "questions", c.Whose)
}

// answerCmd is `mimikit answer`.
type answerCmd struct {
	ID    string   `arg:"" help:"The question's id, or enough of its beginning."`
	Words []string `arg:"" name:"word" help:"The number of an option, or what you want to say."`
	asJSON
}

// Help tells more.
func (*answerCmd) Help() string {
	return `Answers a question that was put to you in one of this account's terminals. What becomes of it is told in its conversation.

Examples:
  mimikit answer q1m7z06qfa 2
  mimikit answer q1m7z06qfa "only the old ones"`
}

// Run answers a question.
func (c *answerCmd) Run(ctx context.Context, std *streams, s *settings) error {
	return order(ctx, std, s, c.asJSON, "answer", c.ID, strings.Join(c.Words, " "))
}
