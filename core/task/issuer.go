package task

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mimikit/core/channel"
	"mimikit/core/chat"
)

// An Issuer spells what commits of core/channel do to tasks. It speaks to nobody,
// so a step can use it and be tested without a Redis. The zero value of all but
// Keys works.
type Issuer struct {
	Keys     channel.Keys
	Profiles map[string]Profile // nil means DefaultProfiles
	Now      func() time.Time   // nil means time.Now
	Rand     func() uint64      // nil means math/rand/v2
}

// A Draft is a task that is asked for.
type Draft struct {
	ID              string // given by who must not ask twice, see [DeriveID]; "" makes one
	Profile         string // one of the Issuer's
	Title           string // "" means the beginning of the prompt; cut at MaxTitle
	Prompt          string // 1 to MaxPrompt bytes
	Conversation    chat.Conversation
	Requester       chat.Author
	Priority        *int           // 0 to MaxPriority; nil means DefaultPriority
	Timeout         *time.Duration // of one run, up to a week, 0 for none; nil means the profile's
	Retry           *Retry         // nil means the profile's
	DeferUntil      time.Time      // zero means now
	TraceID         string         // "" makes one; children take their parent's
	Traceparent     string
	ParentTaskID    string // of the same conversation
	SourceTriggerID string
	TriggeredAt     time.Time
	Internal        bool   // its result is for the supervisor only
	Storage         string // it runs only where this is mounted; "" is anywhere
}

// Create spells the creation of a task, for the commit of a step of its
// conversation. Under an id that exists already it changes nothing. Without a
// given id, a task with the same conversation, prompt, title and profile that is
// not over, and not to be canceled, stands for the new one. A task whose parent
// was canceled is canceled with it. The task is returned as it will be, except for
// what only the commit knows.
//
// It fails on what no task can be made of; the error is for whoever asked.
func (is *Issuer) Create(d Draft) (Task, channel.Call, error) {
	t, p, err := is.check(d)
	if err != nil {
		return Task{}, channel.Call{}, fmt.Errorf("create a task: %w", err)
	}
	call, err := is.creation(t, d.ID != "", p)
	if err != nil {
		return Task{}, channel.Call{}, fmt.Errorf("create task %s: %w", t.ID, err)
	}
	t.Prompt, t.PromptSize = cutText(t.Prompt, chat.MaxText)
	return t, call, nil
}

// check fills a draft in and refuses a bad one.
func (is *Issuer) check(d Draft) (Task, int, error) {
	profiles := is.Profiles
	if profiles == nil {
		profiles = usual
	}
	profile, known := profiles[d.Profile]
	retry, timeout, priority := profile.Retry, profile.Timeout, DefaultPriority
	if d.Retry != nil {
		retry = *d.Retry
	}
	if d.Timeout != nil {
		timeout = *d.Timeout
	}
	if d.Priority != nil {
		priority = *d.Priority
	}
	p := is.Keys.Partition(d.Conversation.Key())
	now := is.now()
	switch {
	case !known || !plain(d.Profile):
		return Task{}, 0, fmt.Errorf("profile %q: allowed are %s", d.Profile, strings.Join(slices.Sorted(maps.Keys(profiles)), ", "))
	case d.Conversation.Platform == "" || d.Conversation.Place == "":
		return Task{}, 0, errors.New("it has no conversation")
	case strings.TrimSpace(d.Prompt) == "":
		return Task{}, 0, errors.New("the prompt is empty")
	case len(d.Prompt) > MaxPrompt:
		return Task{}, 0, fmt.Errorf("the prompt has %d bytes; at most %d are allowed", len(d.Prompt), MaxPrompt)
	case priority < 0 || priority > MaxPriority:
		return Task{}, 0, fmt.Errorf("priority %d: allowed are 0 to %d", priority, MaxPriority)
	case timeout < 0 || timeout > maxTimeout:
		return Task{}, 0, fmt.Errorf("timeout %s: allowed are 0 to %s", timeout, maxTimeout)
	case retry.MaxAttempts < 0 || retry.MaxAttempts > maxRetries:
		return Task{}, 0, fmt.Errorf("retry.maxAttempts %d: allowed are 0 to %d", retry.MaxAttempts, maxRetries)
	case retry.Backoff < 0 || retry.Backoff > maxBackoff:
		return Task{}, 0, fmt.Errorf("retry.backoff %s: allowed are 0 to %s", retry.Backoff, maxBackoff)
	case d.DeferUntil.After(now.AddDate(10, 0, 0)):
		return Task{}, 0, fmt.Errorf("deferUntil %s: that is more than ten years ahead", d.DeferUntil.UTC().Format(time.RFC3339))
	}
	for _, id := range []string{d.ID, d.ParentTaskID} {
		if id == "" {
			continue
		}
		if _, at, err := ParseID(id); err != nil {
			return Task{}, 0, err
		} else if at != p {
			return Task{}, 0, fmt.Errorf("task %s lives in partition %d, but its conversation %s in %d", id, at, d.Conversation, p)
		}
	}
	t := Task{
		ID: cmp.Or(d.ID, NewID(now, p, is.rand())), Type: Type, Profile: d.Profile, Title: title(d), Prompt: strings.ToValidUTF8(d.Prompt, "�"),
		Conversation: d.Conversation, Requester: d.Requester, Priority: priority, Timeout: timeout, Retry: retry,
		DeferUntil: d.DeferUntil, CreatedAt: now, TraceID: cmp.Or(d.TraceID, fmt.Sprintf("%016x%016x", is.rand(), is.rand())), Traceparent: d.Traceparent,
		ParentTaskID: d.ParentTaskID, SourceTriggerID: d.SourceTriggerID, TriggeredAt: d.TriggeredAt.UTC(),
		Internal: d.Internal, Storage: d.Storage, SchemaVersion: Schema, Status: Pending,
	}
	if d.TriggeredAt.IsZero() {
		t.TriggeredAt = time.Time{}
	}
	if d.DeferUntil.After(now) {
		t.Status = Deferred
	}
	return t, p, nil
}

// creation spells the call that creates a task.
func (is *Issuer) creation(t Task, given bool, p int) (channel.Call, error) {
	r := row{
		Schema: Schema, ID: t.ID, Type: t.Type, Profile: t.Profile, Title: t.Title,
		Conversation: t.Conversation, Requester: t.Requester, Priority: t.Priority, TimeoutMs: t.Timeout.Milliseconds(),
		Retries: t.Retry.MaxAttempts, BackoffMs: t.Retry.Backoff.Milliseconds(), TraceID: t.TraceID, Traceparent: t.Traceparent,
		ParentTaskID: t.ParentTaskID, SourceTriggerID: t.SourceTriggerID, TriggeredAt: t.TriggeredAt, Internal: t.Internal, Storage: t.Storage,
	}
	r.Prompt, r.PromptSize = cutText(t.Prompt, chat.MaxText)
	rowJSON, err := json.Marshal(r)
	if err != nil {
		return channel.Call{}, err
	}
	s := state{
		Conv: t.Conversation.Key(), Class: class(t.Profile, t.Storage), Priority: strconv.Itoa(t.Priority),
		Requester: requesterWord(t.Conversation, t.Requester.ID), Parent: t.ParentTaskID, Made: is.commitID(),
		Dedupe: digest(t), Retries: strconv.Itoa(t.Retry.MaxAttempts), Backoff: strconv.FormatInt(t.Retry.Backoff.Milliseconds(), 10),
	}
	if t.Internal || t.Profile == Planner {
		s.Audience = "supervisor"
	}
	told, err := lines(t)
	if err != nil {
		return channel.Call{}, err
	}
	stateJSON, err := json.Marshal(s)
	if err != nil {
		return channel.Call{}, err
	}
	due := ""
	if !t.DeferUntil.IsZero() {
		due = strconv.FormatInt(t.DeferUntil.UnixMilli(), 10)
	}
	call := is.op(p, "create", t.ID, string(rowJSON)+"\n"+told, string(stateJSON), due,
		s.Conv, s.Class, s.Priority, s.Requester, s.Parent, s.Audience, s.Dedupe, s.Made, flag(given))
	if r.PromptSize > 0 {
		call.Keys = append(call.Keys, promptKey(is.Keys, p, t.ID))
		call.Args = append(call.Args, t.Prompt)
	}
	return call, nil
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// Cancel spells the cancel of a task and of all that it started, for a commit of
// the conversation that it must belong to; of another's, or of one that there is
// not, nothing is changed. What does not run ends at once; what runs is told to,
// and ends canceled however it ends. Of a task that is over only what it started
// is canceled.
func (is *Issuer) Cancel(c chat.Conversation, id string, by chat.Author, reason string) (channel.Call, error) {
	p, err := is.at(c, id)
	if err != nil {
		return channel.Call{}, fmt.Errorf("cancel: %w", err)
	}
	return is.cancel(p, id, c.Key(), by, reason)
}

func (is *Issuer) cancel(p int, id, conv string, by chat.Author, reason string) (channel.Call, error) {
	who, err := json.Marshal(by)
	if err != nil {
		return channel.Call{}, fmt.Errorf("cancel task %s: encode who wants it: %w", id, err)
	}
	reason, _ = cutText(reason, MaxError)
	call := is.op(p, "cancel", id, conv, string(who), reason, is.commitID())
	call.Keys = append(call.Keys, checkpointKey(is.Keys, p, id))
	return call, nil
}

// Answer spells the answer to the question with which a task waits, so that it
// becomes pending. Only the first answer to the question counts.
func (is *Issuer) Answer(c chat.Conversation, id, question, text string, by chat.Author) (channel.Call, error) {
	p, err := is.at(c, id)
	if err != nil {
		return channel.Call{}, fmt.Errorf("answer: %w", err)
	}
	who, err := json.Marshal(by)
	if err != nil {
		return channel.Call{}, fmt.Errorf("answer task %s: encode who answers: %w", id, err)
	}
	text, _ = cutText(text, chat.MaxText)
	return is.op(p, "answer", id, question, text, string(who)), nil
}

// Watch spells that a trigger waits for the end of a task of the conversation: its
// result is put into supervisor-event as well, at once when it is over already,
// and it is kept until [Issuer.Unwatch].
func (is *Issuer) Watch(c chat.Conversation, id, trigger string) (channel.Call, error) {
	return is.watching(c, "watch", id, trigger)
}

// Unwatch takes a Watch back.
func (is *Issuer) Unwatch(c chat.Conversation, id, trigger string) (channel.Call, error) {
	return is.watching(c, "unwatch", id, trigger)
}

func (is *Issuer) watching(c chat.Conversation, op, id, trigger string) (channel.Call, error) {
	p, err := is.at(c, id)
	if err != nil {
		return channel.Call{}, fmt.Errorf("%s: %w", op, err)
	}
	if trigger == "" || strings.ContainsAny(trigger, " \t\n") || len(trigger) > 100 {
		return channel.Call{}, fmt.Errorf("%s task %s: trigger id %q: want 1 to 100 characters without spaces", op, id, trigger)
	}
	return is.op(p, op, id, trigger), nil
}

// op spells one call of the extension.
func (is *Issuer) op(p int, op string, args ...string) channel.Call {
	return channel.Call{Extension: extensionName, Keys: fixed(is.Keys, p), Args: append(opening(is.Keys, p, op), args...)}
}

// at says where a task lives, which must be where the conversation does: else no
// commit of the conversation can touch it.
func (is *Issuer) at(c chat.Conversation, id string) (int, error) {
	_, p, err := ParseID(id)
	if err == nil && p != is.Keys.Partition(c.Key()) {
		err = fmt.Errorf("task %s: %w in %s", id, ErrUnknown, c)
	}
	return p, err
}

// Derive is DeriveID in the partition of a conversation.
func (is *Issuer) Derive(c chat.Conversation, at time.Time, parts ...string) string {
	return DeriveID(at, is.Keys.Partition(c.Key()), parts...)
}

func (is *Issuer) now() time.Time {
	if is.Now != nil {
		return is.Now().UTC()
	}
	return time.Now().UTC()
}

func (is *Issuer) rand() uint64 {
	if is.Rand != nil {
		return is.Rand()
	}
	return rand.Uint64()
}

// commitID names one wish, so that a repeat of it is known.
func (is *Issuer) commitID() string { return strconv.FormatUint(is.rand(), 36) }

// class is the kind of worker that a task needs.
func class(profile, storage string) string { return profile + "@" + url.QueryEscape(storage) }

// requesterWord spells who asked, as the index does: ids are a platform's own.
func requesterWord(c chat.Conversation, author string) string {
	return url.QueryEscape(c.Platform) + "/" + url.QueryEscape(c.Workspace) + "/" + url.QueryEscape(author)
}

// digest is what makes two tasks the same.
func digest(t Task) string {
	var b []byte
	for _, s := range []string{t.Conversation.Key(), t.Prompt, t.Title, t.Profile} {
		b = append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
	}
	h := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(h[:16])
}

// title is the given one on one line, or the beginning of the prompt.
func title(d Draft) string {
	if t := strings.Join(strings.Fields(strings.ToValidUTF8(d.Title, "�")), " "); t != "" {
		t, _ = cutText(t, MaxTitle)
		return t
	}
	t, cut := cutText(strings.Join(strings.Fields(strings.ToValidUTF8(d.Prompt, "�")), " "), 80)
	if cut > 0 {
		t += "…"
	}
	return t
}

// cutText cuts a text at a whole character and tells how many bytes it had, or 0
// when nothing was cut.
func cutText(s string, most int) (string, int) {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= most {
		return s, 0
	}
	size := len(s)
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most], size
}

// plain reports whether a name can be a word of the index.
func plain(s string) bool {
	return s != "" && len(s) <= 40 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
