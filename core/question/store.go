package question

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/task"
)

var (
	//go:embed lua/extension.lua
	extensionSource string
	//go:embed lua/call.lua
	callSource string
	//go:embed lua/due.lua
	dueSource string

	callScript = redis.NewScript(alone() + callSource)
	dueScript  = redis.NewScript(alone() + dueSource)
)

const extensionName = "question"

// Extensions are what a channel.Node must be given beside those of core/task, so
// that the calls that an [Issuer] spells can be committed.
func Extensions() []channel.Extension {
	return []channel.Extension{{Name: extensionName, Source: extensionSource}}
}

// alone spells both extensions as core/channel puts them before its script.
func alone() string { return channel.Prelude(append(task.Extensions(), Extensions()...)) }

// signals is the pub/sub channel on which scripts say that a question with a
// deadline was asked: the number of the partition.
func signals(k channel.Keys) string { return k.Prefix + ":q:signals" }

// Options of a Store. Issuer and Client are needed.
type Options struct {
	Issuer      Issuer
	Client      redis.UniversalClient // must not repeat commands by itself
	CallTimeout time.Duration         // bound of one call to Redis (default 5 s)

	// Sent and Saw tell who looks after the partition's commit number what was
	// answered to a call, see channel.Node.
	Sent func(partition int) int64
	Saw  func(ctx context.Context, partition int, sent, got int64) (lost bool)

	// Closed is told of a question that this process has closed, whichever way; where
	// the answer of Redis was lost also of one that it may have closed, or that somebody
	// else has, and of one twice if need be. It must not wait, and may be nil.
	Closed func(id string)

	Logger *slog.Logger // default: discards
}

// A Store is where questions are. It holds no state of its own, except for what it is
// not sure to have been answered, and is safe for concurrent use.
type Store struct {
	o    Options
	is   *Issuer
	keys channel.Keys
	log  *slog.Logger

	mu     sync.Mutex
	unsure map[int]time.Time // :: partition → since when no call of Due was answered
}

// New checks the options. It does not connect.
func New(o Options) (*Store, error) {
	if o.Client == nil || o.Issuer.Tasks == nil {
		return nil, errors.New("new question store: Client and Issuer.Tasks must be set")
	}
	if o.CallTimeout < 0 {
		return nil, errors.New("new question store: CallTimeout is negative")
	}
	o.CallTimeout = cmp.Or(o.CallTimeout, 5*time.Second)
	if o.Sent == nil {
		o.Sent = func(int) int64 { return 0 }
	}
	if o.Saw == nil {
		o.Saw = func(context.Context, int, int64, int64) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{o: o, is: &o.Issuer, keys: o.Issuer.Tasks.Keys, log: o.Logger, unsure: map[int]time.Time{}}, nil
}

// Issuer spells what commits do to the questions of this store.
func (s *Store) Issuer() *Issuer { return s.is }

// An Answer is what somebody says to a question.
type Answer struct {
	By      chat.Author
	Text    string
	Option  string // that was chosen, "" when it is none
	How     string // ByButton or ByText
	At      time.Time
	Message string // the platform's id of the message, where it came by one
	ReplyTo string
	// Dedupe is the key by which the message is heard once, as channel.Input has
	// it; "" for a press, which is heard once by closing the question.
	Dedupe      string
	TraceID     string
	Traceparent string
}

// remember is how long a message that was an answer is remembered, as core/channel
// remembers those that were none.
const remember = 26 * time.Hour

// Answer closes a question with an answer, and hands that on. heard says that the
// message was heard before. It fails with ErrUnknown, ErrNotAsked, ErrNoOption or a
// *[ClosedError].
func (s *Store) Answer(ctx context.Context, q Question, a Answer) (inputID string, heard bool, err error) {
	if !q.MayAnswer(a.By) {
		return "", false, fmt.Errorf("answer question %s: %w", q.ID, ErrNotAsked)
	}
	if q.OnlyOptions && (a.Option == "" || a.Option != a.Text || !slices.Contains(q.Options, a.Option)) {
		return "", false, fmt.Errorf("answer question %s: %w: %q", q.ID, ErrNoOption, q.Options)
	}
	_, p, err := ParseID(q.ID)
	if err != nil {
		return "", false, err
	}
	in := chat.UserInput{
		ID: "answer-" + q.ID, Conversation: q.Conversation, Kind: chat.KindAnswer, Message: a.Message, ReplyTo: a.ReplyTo, Author: a.By,
		Text: cutText(a.Text, chat.MaxText), Addressed: true, Question: q.ID, Option: a.Option, At: a.At.UTC(),
	}
	digest := ""
	call := s.is.op(p, "answer")
	if a.Dedupe != "" {
		in.ID = channel.InputID(a.Dedupe)
		sum := sha256.Sum256([]byte(a.Dedupe))
		digest = string(sum[:16])
		call.Keys = append(call.Keys, s.keys.Seen(p, a.At.Unix()/3600))
	}
	who, err := jsonText(a.By)
	if err != nil {
		return "", false, err
	}
	var payload any = in
	if q.TaskID != "" { // the task is told, and people that it goes on
		payload = chat.Reply{
			ID: "ra-" + q.ID, Conversation: q.Conversation, Kind: chat.ReplyNotice, Text: "Thank you, I go on with: " + cutText(a.Text, 500),
			InputIDs: []string{in.ID}, ReplyTo: a.Message, CreatedAt: in.At,
		}
	}
	f, err := fields(payload, channel.Entry{
		Kind: string(in.Kind), Conversation: q.Conversation.Key(), InputIDs: []string{in.ID}, TraceID: cmp.Or(a.TraceID, q.TraceID), Traceparent: a.Traceparent,
	})
	if err != nil {
		return "", false, err
	}
	call.Args = append(call.Args, q.ID, q.Conversation.Key(), who, in.Text, a.Option, a.How, digest, strconv.Itoa(int(remember/time.Second)))
	call.Args = append(call.Args, f...)
	did, repeated, err := s.perform(ctx, p, call)
	switch {
	case err != nil:
		if repeated { // one of the tries may have closed it
			s.closed(q.ID)
		}
	case did == "answered":
		s.closed(q.ID)
		return in.ID, false, nil
	case did == "seen":
		if repeated { // as an answer, by the first try
			s.closed(q.ID)
		}
		return in.ID, !repeated, nil
	case did == "closed", did == "withdrawn":
		if did == "withdrawn" || repeated { // this call has closed it, or its first try may have
			s.closed(q.ID)
		}
		var now Question
		if now, err = s.Get(ctx, q.ID); err == nil {
			if repeated && now.AnsweredBy.ID == a.By.ID && now.Answer == in.Text {
				return in.ID, false, nil // the first try has closed it
			}
			err = &ClosedError{now}
		}
	default:
		err = ErrUnknown
	}
	return "", false, fmt.Errorf("answer question %s: %w", q.ID, err)
}

// Ask asks a question by itself, without the commit of a step, and without its post.
func (s *Store) Ask(ctx context.Context, d Draft) (Question, error) {
	q, call, _, err := s.is.Create(d)
	if err != nil {
		return Question{}, err
	}
	did, _, err := s.perform(ctx, s.keys.Partition(d.Conversation.Key()), call)
	if err == nil && did == "full" {
		err = ErrFull
	}
	if err != nil {
		return Question{}, fmt.Errorf("ask question %s: %w", q.ID, err)
	}
	return s.Get(ctx, q.ID)
}

// ErrFull says that too many questions of a conversation are open.
var ErrFull = fmt.Errorf("the conversation has %d open questions already", MaxOpen)

// Withdraw does what [Issuer.Withdraw] spells, by itself. One that is closed is no
// error. It fails with ErrUnknown.
func (s *Store) Withdraw(ctx context.Context, q Question, why string) error {
	call, err := s.is.Withdraw(q.Conversation, q.ID, why)
	if err != nil {
		return err
	}
	did, repeated, err := s.perform(ctx, s.keys.Partition(q.Conversation.Key()), call)
	if err == nil && did == "unknown" {
		err = ErrUnknown
	}
	if err != nil {
		if repeated { // one of the tries may have closed it
			s.closed(q.ID)
		}
		return fmt.Errorf("withdraw question %s: %w", q.ID, err)
	}
	s.closed(q.ID)
	return nil
}

func (s *Store) closed(id string) {
	if s.o.Closed != nil {
		s.o.Closed(id)
	}
}

// Due closes the questions of a partition whose deadline is over, and says how long
// it is until the next one; negative when there is none.
func (s *Store) Due(ctx context.Context, p int) (closed []string, next time.Duration, err error) {
	const most = 50
	begun, back := time.Now(), s.back(p)
	got, err := s.send(ctx, p, dueScript, append([]string{s.keys.Commits(p)}, fixed(s.keys, p)...), "", signals(s.keys), p, task.Signals(s.keys), most, back)
	if err != nil {
		if !refused(err) { // it may have closed some all the same
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.unsure[p].IsZero() {
				s.unsure[p] = begun
			}
		}
		return nil, 0, fmt.Errorf("close the late questions of partition %d: %w", p, err)
	}
	if len(got) < 3 {
		return nil, 0, errors.New("close late questions: the script answered too little")
	}
	if back > 0 {
		s.mu.Lock()
		delete(s.unsure, p)
		s.mu.Unlock()
	}
	ms, _ := got[1].(int64)
	before, _ := got[2].([]any)
	for _, v := range before {
		id, _ := v.(string)
		s.closed(id)
	}
	for _, v := range got[3:] {
		id, _ := v.(string)
		closed = append(closed, id)
	}
	if len(closed) > 0 {
		s.log.Info("questions_late", "partition", p, "questions", closed)
	}
	for _, id := range closed {
		s.closed(id)
	}
	next = time.Duration(ms) * time.Millisecond
	if ms < 0 {
		next = -1
	}
	return closed, next, nil
}

// back is for how many ms back it is not sure what was closed in a partition. An hour
// later others look after it, and have closed what they told of.
func (s *Store) back(p int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.unsure[p]
	if since.IsZero() || time.Since(since) > time.Hour {
		delete(s.unsure, p)
		return 0
	}
	return time.Since(since).Milliseconds() + 1000 // the clock of Redis may be set meanwhile
}

// Listen hears until ctx is over in which partition a deadline may be earlier than
// was known; -1 stands for all, when signals may have been missed.
func (s *Store) Listen(ctx context.Context, heard func(partition int)) {
	sub := s.o.Client.Subscribe(ctx, signals(s.keys))
	defer func() { _ = sub.Close() }()
	messages := sub.ChannelWithSubscriptions(redis.WithChannelHealthCheckInterval(time.Minute), redis.WithChannelSize(1000))
	for {
		select {
		case m := <-messages:
			switch m := m.(type) {
			case *redis.Message:
				if p, err := strconv.Atoi(m.Payload); err == nil && p >= 0 && p < s.keys.Partitions {
					heard(p)
				}
			case *redis.Subscription:
				heard(-1)
			case nil:
				return // closed
			}
		case <-ctx.Done():
			return
		}
	}
}

// perform does a call of the extension by itself; repeated says that Redis may have
// seen it before.
func (s *Store) perform(ctx context.Context, p int, c channel.Call) (did string, repeated bool, err error) {
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		args[i] = a
	}
	for try := 0; ; try++ {
		got, err := s.send(ctx, p, callScript, append([]string{s.keys.Commits(p)}, c.Keys...), args...)
		if err == nil && len(got) > 1 {
			did, _ = got[1].(string)
			return did, try > 0, nil
		}
		if err == nil {
			return "", try > 0, fmt.Errorf("the script answered %d parts, want 3", len(got))
		}
		if refused(err) {
			return "", try > 0, err
		}
		wait := min(20*time.Millisecond<<min(try, 6), time.Second)
		t := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return "", true, fmt.Errorf("%w; the last try: %w", context.Cause(ctx), err)
		}
	}
}

// refused reports whether Redis refuses a call for what it is, so that no repeat of
// it can succeed.
func refused(err error) bool {
	var e redis.Error
	if !errors.As(err, &e) {
		return false
	}
	for _, code := range []string{"LOADING", "READONLY", "MISCONF", "OOM", "BUSY", "CLUSTERDOWN", "MOVED", "ASK", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS"} {
		if redis.HasErrorPrefix(err, code) || strings.Contains(err.Error(), " -"+code+" ") {
			return false
		}
	}
	return true
}

// send calls a script once. Its first answer is the commit number, 0 when nothing
// was written.
func (s *Store) send(ctx context.Context, p int, script *redis.Script, keys []string, args ...any) ([]any, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.CallTimeout)
	defer cancel()
	sent := s.o.Sent(p)
	got, err := script.Run(ctx, s.o.Client, keys, args...).Slice()
	if err != nil {
		return nil, err
	}
	if len(got) == 0 {
		return nil, errors.New("the script answered nothing")
	}
	if commits, _ := got[0].(int64); commits > 0 && s.o.Saw(ctx, p, sent, commits) {
		s.log.Error("question_store_saw_lost_writes", "partition", p)
	}
	return got, nil
}
