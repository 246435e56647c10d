package llm

import (
	"context"
	"errors"
)

// shortenRounds is how often a prompt is shortened for one answer.
const shortenRounds = 3

// Shorten asks the request's own Shorten for a shorter prompt when the model
// found the prompt too long, and calls again with it, up to three times. A
// request without Shorten, or one that has nothing shorter to give, fails as
// it did.
func Shorten(model Model) Model { return shorten{model} }

type shorten struct{ model Model }

// Complete implements [Model].
func (s shorten) Complete(ctx context.Context, req Request) (Response, error) {
	heard := listen(&req)
	var spent Response
	for round := 1; ; round++ {
		res, err := s.model.Complete(ctx, req)
		res = res.after(spent)
		if err == nil {
			return res, nil
		}
		spent = res.spent()
		var failed *Error
		if !errors.As(err, &failed) || failed.Kind != TooLong || req.Shorten == nil || round > shortenRounds || ctx.Err() != nil {
			return spent, err
		}
		shorter := req.Shorten(round)
		if len(shorter) == 0 {
			return spent, err
		}
		req.Messages = shorter
		heard.void()
	}
}
