package inbox

import (
	"errors"
	"fmt"
)

// Why a message was not taken. All of them match ErrRefused too.
var (
	// ErrRefused is matched by every error after which the listener is to
	// acknowledge the event and not offer it again.
	ErrRefused = errors.New("message refused")
	// ErrEmpty refuses a message with nothing in it.
	ErrEmpty = errors.New("the message is empty")
	// ErrTooLong refuses a text of more than MaxMessage bytes.
	ErrTooLong = errors.New("the message is too long")
	// ErrInvalid refuses what a listener must not send: it names no place, no
	// message or no time.
	ErrInvalid = errors.New("the message is incomplete")
)

// A Refusal is why a message is not taken and will not be.
type Refusal struct {
	Reason  string // for the person: whole sentences
	Err     error  // for the log and errors.Is
	outcome Outcome
}

func refuse(o Outcome, err error, reason string, args ...any) *Refusal {
	return &Refusal{Reason: fmt.Sprintf(reason, args...), Err: err, outcome: o}
}

// Error gives the cause.
func (r *Refusal) Error() string { return "refused: " + r.Err.Error() }

// Refused gives the reason for the person. A listener that may not know this
// package finds it by an interface of this one method.
func (r *Refusal) Refused() string { return r.Reason }

// Is makes every Refusal match ErrRefused.
func (r *Refusal) Is(target error) bool { return target == ErrRefused }

// Unwrap gives the cause.
func (r *Refusal) Unwrap() error { return r.Err }
