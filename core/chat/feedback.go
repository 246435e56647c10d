package chat

import "time"

// A FeedbackKind says where feedback comes from.
type FeedbackKind string

// The kinds of feedback.
const (
	FeedbackThinkerError FeedbackKind = "thinker_error" // a turn ended without a model's answer
	FeedbackCaptured     FeedbackKind = "captured"      // the thinker noted what a person said about the bot
	FeedbackReview       FeedbackKind = "review"        // a review of idle conversations found it
	FeedbackSlow         FeedbackKind = "high_latency"  // a turn or a task took long
	FeedbackUsage        FeedbackKind = "high_usage"    // a turn or a task used very many tokens, or a budget is near its end
	FeedbackTellerError  FeedbackKind = "teller_error"  // the teller had no model's answer, and made do without
)

// Feedback is something that whoever runs the bot should know: a failed turn, or
// what people say about its work.
type Feedback struct {
	Kind         FeedbackKind `json:"kind"`
	Conversation Conversation `json:"conversation"`
	Message      string       `json:"message"`            // in one or two sentences, at most MaxText bytes
	Category     string       `json:"category,omitempty"` // bug, quality, speed, missing, praise or other
	Severity     string       `json:"severity,omitempty"` // low, medium or high
	DigestID     string       `json:"digestId,omitempty"` // the turn it is about
	TaskID       string       `json:"taskId,omitempty"`   // the task it is about
	TraceID      string       `json:"traceId,omitempty"`
	Author       Author       `json:"author,omitzero"` // who said it, or on whose behalf it was noted
	At           time.Time    `json:"at"`
}
