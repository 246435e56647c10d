package admin

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"mimikit/core/chat"
	"mimikit/core/task"
)

// feedbackKinds are the words that `feedback` narrows its list by, and severities
// likewise.
var (
	feedbackKinds = []string{
		string(chat.FeedbackReview), string(chat.FeedbackCaptured), string(chat.FeedbackThinkerError), string(chat.FeedbackTellerError),
		string(task.FeedbackError), string(task.FeedbackRetry), string(chat.FeedbackSlow), string(chat.FeedbackUsage),
	}
	severities = []string{"low", "medium", "high"}
)

// mostFeedback bounds one list.
const mostFeedback = 200

// A feedbackWish is which feedback is to be listed.
type feedbackWish struct {
	kind, severity string // "" for any
	most           int
}

func (w feedbackWish) wants(f chat.Feedback) bool {
	return (w.kind == "" || w.kind == string(f.Kind)) && (w.severity == "" || w.severity == f.Severity)
}

// readFeedback reads a kind, a severity and a number, in any order.
func readFeedback(args []string, usual int) (feedbackWish, error) {
	w := feedbackWish{most: usual}
	numbered := false
	for _, arg := range args {
		word := strings.ToLower(arg)
		n, err := strconv.Atoi(word)
		switch {
		case slices.Contains(feedbackKinds, word) && w.kind == "":
			w.kind = word
		case slices.Contains(severities, word) && w.severity == "":
			w.severity = word
		case err == nil && n >= 1 && n <= mostFeedback && !numbered:
			w.most, numbered = n, true
		case err == nil && !numbered:
			return w, refuse("%s: one number from 1 to %d is allowed.", code(cut(arg, 40)), mostFeedback)
		default:
			return w, odd(arg, slices.Concat(feedbackKinds, severities, []string{"how many at most"}))
		}
	}
	return w, nil
}

func plainFeedback(args []string) bool {
	_, err := readFeedback(args, 1)
	return err == nil
}

// feedback is the command.
func (q *query) feedback(ctx context.Context, args []string) (Answer, error) {
	w, err := readFeedback(args, q.c.PageSize)
	if err != nil {
		return Answer{}, err
	}
	// Of what is read some is not the caller's to see.
	all, err := q.o.Channels.Feedback(ctx, 1000)
	if err != nil {
		return Answer{}, err
	}
	list, more := make([]chat.Feedback, 0, w.most), false
	for _, f := range all {
		if !w.wants(f) || !q.c.reaches(f.Conversation) {
			continue
		}
		if more = len(list) == w.most; more {
			break
		}
		if !q.reads(f.Conversation, f.Author.ID != "" && f.Author.ID == q.c.Author.ID) {
			f.Message, f.Author.Name = withheld, ""
		}
		list = append(list, f)
	}
	var a Answer
	a.Data = list
	if len(list) == 0 {
		words := "There is no feedback"
		if w.kind != "" || w.severity != "" {
			words += " like that"
		}
		a.say(words + ".")
		return a, nil
	}
	t := a.table("When", "Kind", "Severity", "About", "Who", "Message")
	for _, f := range list {
		about := f.Category
		if f.TaskID != "" {
			about = strings.TrimSpace(about + " " + brief(f.TaskID))
		}
		t.row(q.ago(f.At), string(f.Kind), f.Severity, about, personName(f.Author), cut(clean(f.Message), 200))
	}
	if more && w.most < mostFeedback {
		next := strings.Join(slices.DeleteFunc([]string{"feedback", w.kind, w.severity, strconv.Itoa(min(2*w.most, mostFeedback))}, func(s string) bool { return s == "" }), " ")
		a.say("More: " + q.c.name(next) + ".")
		a.press("More", "", next)
	}
	return a, nil
}
