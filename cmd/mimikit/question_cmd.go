package main

import (
	"context"
	"slices"
	"strings"
)

// questionsCmd is `mimikit questions`.
type questionsCmd struct {
	Words []string `arg:"" optional:"" name:"word" help:"The same in words, as in chat: mine, or all (the default), the number of a page."`
	asJSON
}

// Run lists open questions.
func (c *questionsCmd) Run(ctx context.Context, std *streams, s *settings) error {
	words := append([]string{"questions"}, c.Words...)
	if len(c.Words) == 0 || digitsOnly(c.Words[0]) {
		words = slices.Insert(words, 1, "all")
	}
	return order(ctx, std, s, c.asJSON, words...)
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
