package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"mimikit/adapters"
	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	at     = time.Date(2026, 11, 21, 10, 0, 30, 0, time.UTC)
	thread = chat.Conversation{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "100.1"}
)

func said(text string, change ...func(*adapters.Message)) adapters.Message {
	m := adapters.Message{
		Conversation: thread, Kind: chat.KindMessage, Message: "100.2", Text: text, Addressed: true, At: at,
		Author: chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}, Traceparent: "00-aa-bb-01",
	}
	for _, f := range change {
		f(&m)
	}
	return m
}

// A door keeps what it is given, once for each dedupe key.
type door struct {
	inputs    []channel.Input
	published []string // commit ids, repeats left out
	replies   []chat.Reply
	err       error // of Ingest
	noPublish error
	order     *[]string
}

func (d *door) Ingest(_ context.Context, in channel.Input) (channel.Accepted, error) {
	if d.err != nil {
		return channel.Accepted{}, fmt.Errorf("accept input: %w", d.err)
	}
	*d.order = append(*d.order, "ingest")
	known := slices.ContainsFunc(d.inputs, func(x channel.Input) bool { return x.Dedupe == in.Dedupe })
	if !known {
		d.inputs = append(d.inputs, in)
	}
	return channel.Accepted{InputID: channel.InputID(in.Dedupe), Known: known}, nil
}

func (d *door) Publish(_ context.Context, commit string, _ time.Time, conversation string, p channel.Publish) error {
	if d.noPublish != nil {
		return d.noPublish
	}
	r := p.Value.(*chat.Reply)
	if p.To != channel.TellerReply || conversation != r.Conversation.Key() {
		return fmt.Errorf("published to %s in %s", p.To, conversation)
	}
	if !slices.Contains(d.published, commit) {
		d.published, d.replies = append(d.published, commit), append(d.replies, *r)
	}
	return nil
}

// Blobs keeps texts by id.
type blobs struct {
	kept  map[string]string
	err   error
	order *[]string
}

func (b *blobs) Put(_ context.Context, conversation, id, text string) error {
	if b.err != nil {
		return b.err
	}
	*b.order = append(*b.order, "blob")
	b.kept[conversation+" "+id] = text
	return nil
}

type fixture struct {
	*Inbox
	door  *door
	blobs *blobs
	now   time.Time
	seen  []string
	order []string // of what was stored
}

func setup() *fixture {
	f := &fixture{now: at}
	f.door = &door{order: &f.order}
	f.blobs = &blobs{kept: map[string]string{}, order: &f.order}
	f.Inbox = New(Options{
		Door: f.door, Blobs: f.blobs,
		Seen: func(platform string, o Outcome) { f.seen = append(f.seen, platform+" "+string(o)) },
		Now:  func() time.Time { return f.now },
	})
	return f
}

// one submits a message and gives the one input stored.
func (f *fixture) one(t *testing.T, m adapters.Message) channel.Input {
	t.Helper()
	r, err := f.Submit(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.door.inputs) != 1 {
		t.Fatalf("%d inputs are stored, want 1", len(f.door.inputs))
	}
	in := f.door.inputs[0]
	if r.InputID != channel.InputID(in.Dedupe) || r.Duplicate {
		t.Errorf("receipt %+v, want the new input %s", r, channel.InputID(in.Dedupe))
	}
	return in
}

func TestSubmit(t *testing.T) {
	t.Parallel()
	f := setup()
	m := said("hello", func(m *adapters.Message) {
		m.Kind, m.ReplyTo = "", "99.9"
		m.At = at.In(time.FixedZone("", 3600))
		m.Author.Name = "Ann\n\x1b[31m  Smith"
	})
	got := f.one(t, m)
	want := channel.Input{
		Value: chat.UserInput{
			Conversation: thread, Kind: chat.KindMessage, Message: "100.2", ReplyTo: "99.9", Text: "hello", Addressed: true, At: at,
			Author: chat.Author{ID: "U1", Name: "Ann [31m Smith", Role: chat.RoleUser},
		},
		Dedupe: "slack/T1/C1/100.2/", At: at, TraceID: telemetry.TraceID(channel.InputID("slack/T1/C1/100.2/")),
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("stored %+v\nwant   %+v", got, want)
	}
	if want := []string{"slack accepted"}; !slices.Equal(f.seen, want) {
		t.Errorf("counted %q, want %q", f.seen, want)
	}
}

// The shape of a text, whatever bytes it came in.
func TestText(t *testing.T) {
	t.Parallel()
	var every strings.Builder
	for b := range 256 {
		every.WriteByte(byte(b))
	}
	for _, c := range []struct{ name, text, want string }{
		{"plain", " two\n\tlines ", " two\n\tlines "},
		{"line ends", "a\r\nb\rc\u0085d", "a\nb\nc\nd"},
		{"escape sequences", "a\x1b[2J\x1b]0;t\x07b", "a[2J]0;tb"},
		{"zero bytes", "a\x00b\x00", "ab"},
		{"delete and C1", "a\x7fb\u009b31mc", "ab31mc"},
		{"not UTF-8", "caf\xe9 \xff\xfe.", "caf\uFFFD \uFFFD."},
		{"half a rune", "日\xe6\x9c", "日\uFFFD"},
		{"surrogates", "\xed\xa0\x80x", "\uFFFDx"},
		{"emoji and direction", "👩\u200d💻 \u202bשלום\u202c", "👩\u200d💻 \u202bשלום\u202c"},
		{"every byte", every.String(), "\t\n\n" + printable() + "\uFFFD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := setup().one(t, said(c.text)).Value
			if got.Text != c.want || got.TextSize != 0 || got.TextBlob != "" {
				t.Errorf("%q became %q (size %d, blob %q), want %q", c.text, got.Text, got.TextSize, got.TextBlob, c.want)
			}
		})
	}
}

func printable() string {
	var s strings.Builder
	for b := ' '; b < 0x7F; b++ {
		s.WriteRune(b)
	}
	return s.String()
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		m       adapters.Message
		want    error
		outcome string
		words   []string // in the error or in the reason
	}{
		{"empty", said(""), ErrEmpty, "slack empty", []string{"no text"}},
		{"blank", said(" \n\t\u00a0"), ErrEmpty, "slack empty", nil},
		{"control characters only", said("\x00\x01\x1b\x7f"), ErrEmpty, "slack empty", nil},
		{"an edit to nothing", said("", func(m *adapters.Message) { m.Kind, m.Edit = chat.KindEdit, "1" }), ErrEmpty, "slack empty", nil},
		{"an answer without a choice", said("", func(m *adapters.Message) { m.Kind = chat.KindAnswer }), ErrEmpty, "slack empty", nil},
		{"1 MiB", said(strings.Repeat("x", 1<<20)), ErrTooLong, "slack too_long", []string{"1048576 bytes", "at most 524288", "1024 KiB", "at most 512"}},
		{"1 MiB of binary", said(strings.Repeat("\x00\xff", 1<<19)), ErrTooLong, "slack too_long", nil},
		{"no message id", said("x", func(m *adapters.Message) { m.Message = "" }), ErrInvalid, "slack invalid", []string{"no message id"}},
		{"no place", said("x", func(m *adapters.Message) { m.Conversation.Place = "" }), ErrInvalid, "slack invalid", []string{"no place"}},
		{"no time", said("x", func(m *adapters.Message) { m.At = time.Time{} }), ErrInvalid, "slack invalid", []string{"no time"}},
		{"no edit stamp", said("x", func(m *adapters.Message) { m.Kind = chat.KindEdit }), ErrInvalid, "slack invalid", []string{"no edit stamp"}},
		{"no platform", said("x", func(m *adapters.Message) { m.Conversation.Platform = "" }), ErrInvalid, " invalid", []string{"no platform"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup()
			_, err := f.Submit(t.Context(), c.m)
			var refusal *Refusal
			if !errors.Is(err, c.want) || !errors.Is(err, ErrRefused) || !errors.As(err, &refusal) {
				t.Fatalf("%v, want a refusal that is %v", err, c.want)
			}
			if len(f.door.inputs)+len(f.blobs.kept) > 0 {
				t.Error("something was stored")
			}
			if !slices.Equal(f.seen, []string{c.outcome}) {
				t.Errorf("counted %q, want %q", f.seen, c.outcome)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error()+refusal.Refused(), w) {
					t.Errorf("neither %q nor %q says %q", err, refusal.Refused(), w)
				}
			}
		})
	}
}

// What needs no text.
func TestTextless(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*adapters.Message){
		"a file":    func(m *adapters.Message) { m.Attachments = []chat.Attachment{{ID: "F1"}} },
		"a removal": func(m *adapters.Message) { m.Kind = chat.KindDelete },
		"a stop":    func(m *adapters.Message) { m.Kind = chat.KindStop },
		"a button":  func(m *adapters.Message) { m.Kind, m.Question, m.Option = chat.KindAnswer, "q1", "yes" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setup().one(t, said("", change))
		})
	}
}

func TestLongText(t *testing.T) {
	t.Parallel()
	f := setup()
	text := "x" + strings.Repeat("日", MaxMessage/3-1)
	in := f.one(t, said(text)).Value
	if len(in.Text) > chat.MaxText || len(in.Text) < chat.MaxText-2 || !utf8.ValidString(in.Text) || !strings.HasPrefix(text, in.Text) {
		t.Errorf("cut to %d bytes, valid %v; want a start of the text of at most %d", len(in.Text), utf8.ValidString(in.Text), chat.MaxText)
	}
	if in.TextSize != len(text) || f.blobs.kept[thread.Key()+" "+in.TextBlob] != text {
		t.Errorf("size %d and blob %q; want %d and the whole text", in.TextSize, in.TextBlob, len(text))
	}
	if !slices.Equal(f.order, []string{"blob", "ingest"}) {
		t.Errorf("stored in the order %q, want the blob first", f.order)
	}
	// Again, as after a lost answer: the same blob.
	if r, err := f.Submit(t.Context(), said(text)); err != nil || !r.Duplicate || len(f.blobs.kept) != 1 {
		t.Errorf("again: %+v, %v and %d blobs; want a duplicate and 1", r, err, len(f.blobs.kept))
	}
}

func TestExactlyMaxText(t *testing.T) {
	t.Parallel()
	f := setup()
	if in := f.one(t, said(strings.Repeat("x", chat.MaxText))).Value; in.TextBlob != "" || len(in.Text) != chat.MaxText {
		t.Errorf("a text of just %d bytes was cut to %d", chat.MaxText, len(in.Text))
	}
}

// Without the whole text there must be no entry that names it.
func TestBlobFails(t *testing.T) {
	t.Parallel()
	f := setup()
	f.blobs.err = errors.New("away")
	_, err := f.Submit(t.Context(), said(strings.Repeat("x", 40_000)))
	if err == nil || errors.Is(err, ErrRefused) || len(f.door.inputs) != 0 {
		t.Errorf("%v and %d inputs; want an error that leaves it open, and none", err, len(f.door.inputs))
	}
	if !slices.Equal(f.seen, []string{"slack failed"}) {
		t.Errorf("counted %q", f.seen)
	}
}

func TestAttachments(t *testing.T) {
	t.Parallel()
	var all []chat.Attachment
	for i := range 40 {
		all = append(all, chat.Attachment{ID: fmt.Sprint(i), Name: "a\x00\nb" + strings.Repeat("ü", 200), URL: "https://x/" + strings.Repeat("y", i*40), Text: strings.Repeat("t\x1b", 2000)})
	}
	in := setup().one(t, said(strings.Repeat("x", 10_000), func(m *adapters.Message) { m.Attachments = all })).Value
	if len(in.Attachments) != maxAttachments {
		t.Fatalf("%d attachments, want %d", len(in.Attachments), maxAttachments)
	}
	size := len(in.Text)
	for i, a := range in.Attachments {
		size += len(a.Text)
		if !strings.HasPrefix(a.Name, "a bü") || len(a.Name) > maxName || !utf8.ValidString(a.Name) || strings.Contains(a.Text, "\x1b") {
			t.Errorf("attachment %d: name %q", i, a.Name)
		}
		if a.URL != "" && a.URL != all[i].URL {
			t.Errorf("attachment %d: half a link, %q", i, a.URL)
		}
	}
	if size != chat.MaxText {
		t.Errorf("texts have %d bytes together, want all of the %d there is room for", size, chat.MaxText)
	}
	if all[0].Text != strings.Repeat("t\x1b", 2000) {
		t.Error("the caller's attachments were changed")
	}
}

// One happening, one key; two, two.
func TestDedupe(t *testing.T) {
	t.Parallel()
	edit := func(kind chat.InputKind, stamp string) func(*adapters.Message) {
		return func(m *adapters.Message) { m.Kind, m.Edit = kind, stamp }
	}
	for _, c := range []struct {
		name   string
		change func(*adapters.Message)
		want   string
	}{
		{"message", func(*adapters.Message) {}, "slack/T1/C1/100.2/"},
		{"in another thread's eyes", func(m *adapters.Message) { m.Conversation.Thread = "" }, "slack/T1/C1/100.2/"},
		{"another text", func(m *adapters.Message) { m.Text = "other" }, "slack/T1/C1/100.2/"},
		{"edit", edit(chat.KindEdit, "101"), "slack/T1/C1/100.2/101"},
		{"second edit", edit(chat.KindEdit, "102"), "slack/T1/C1/100.2/102"},
		{"removal", edit(chat.KindDelete, ""), "slack/T1/C1/100.2/deleted"},
		{"removal, said so", edit(chat.KindDelete, "deleted"), "slack/T1/C1/100.2/deleted"},
		{"interaction", func(m *adapters.Message) { m.Kind, m.Message = chat.KindAnswer, "int/1" }, "slack/T1/C1/int%2F1/"},
		{"direct message", func(m *adapters.Message) { m.Conversation.Workspace = "" }, "slack//C1/100.2/"},
		{"slashes", func(m *adapters.Message) { m.Conversation.Workspace, m.Conversation.Place = "T1/C1", "x" }, "slack/T1%2FC1/x/100.2/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := setup().one(t, said("hello", c.change)).Dedupe; got != c.want {
				t.Errorf("dedupe key %q, want %q", got, c.want)
			}
		})
	}
}

func TestDuplicate(t *testing.T) {
	t.Parallel()
	f := setup()
	first, err := f.Submit(t.Context(), said("hello"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := f.Submit(t.Context(), said("hello"))
	if err != nil || again != (adapters.Receipt{InputID: first.InputID, Duplicate: true}) {
		t.Errorf("again: %+v, %v; want a duplicate of %s", again, err, first.InputID)
	}
	if want := []string{"slack accepted", "slack duplicate"}; !slices.Equal(f.seen, want) {
		t.Errorf("counted %q, want %q", f.seen, want)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	f := setup()
	if _, err := f.Stop(t.Context(), said("")); err != nil {
		t.Fatal(err)
	}
	if in := f.door.inputs[0]; !in.Stop || in.Value.Kind != chat.KindStop {
		t.Errorf("stored %+v, want a stop that raises the number", in)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	f := setup()
	f.door.err = channel.ErrFull
	refused := func(m adapters.Message) {
		t.Helper()
		_, err := f.Submit(t.Context(), m)
		var r *Refusal
		if !errors.As(err, &r) || !errors.Is(err, ErrRefused) || !errors.Is(err, channel.ErrFull) || !strings.Contains(r.Refused(), "Too many") {
			t.Fatalf("%v, want a refusal that is ErrFull and says so", err)
		}
	}
	notices := func(want int) {
		t.Helper()
		if len(f.door.published) != want {
			t.Errorf("%d notices %q, want %d", len(f.door.published), f.door.published, want)
		}
	}
	for range 1000 {
		refused(said("hello"))
	}
	notices(1)
	r := f.door.replies[0]
	if r.Kind != chat.ReplyNotice || r.Conversation != thread || r.Text != fullReason || r.ReplyTo != "100.2" || r.ID == "" || len(r.InputIDs) != 0 {
		t.Errorf("notice %+v", r)
	}
	if want := fmt.Sprint("full/slack/T1/C1/100.1/", at.Unix()/60); f.door.published[0] != want {
		t.Errorf("commit id %q, want %q", f.door.published[0], want)
	}
	refused(said("hello", func(m *adapters.Message) { m.Conversation.Place = "C2" }))
	notices(2)
	f.now = f.now.Add(time.Minute)
	refused(said("hello"))
	notices(3)
	if f.door.replies[2].ID == r.ID {
		t.Error("two notices have one reply id")
	}
	// A notice that could not be said is said with the next refusal.
	f.now = f.now.Add(time.Minute)
	f.door.noPublish = errors.New("away")
	refused(said("hello"))
	f.door.noPublish = nil
	refused(said("hello"))
	notices(4)
}

// Two nodes that refuse in the same minute say it once, and in the same words.
func TestFullOnTwoNodes(t *testing.T) {
	t.Parallel()
	f, g := setup(), setup()
	f.door.err = channel.ErrFull
	g.o.Door = f.door
	g.now = f.now.Add(20 * time.Second)
	for _, n := range []*fixture{f, g} {
		if _, err := n.Submit(t.Context(), said("hello")); !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		}
	}
	if len(f.door.published) != 1 {
		t.Errorf("notices %q, want one", f.door.published)
	}
}

// When Redis is away, nothing is decided.
func TestOpen(t *testing.T) {
	t.Parallel()
	f := setup()
	f.door.err = context.DeadlineExceeded
	_, err := f.Submit(t.Context(), said("hello"))
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `"100.2"`) {
		t.Errorf("%v; want the cause, no refusal, and the message named", err)
	}
	if !slices.Equal(f.seen, []string{"slack failed"}) {
		t.Errorf("counted %q", f.seen)
	}
}

// The defaults work.
func TestZeroOptions(t *testing.T) {
	t.Parallel()
	var order []string
	d := &door{order: &order}
	b := New(Options{Door: d})
	for range 2 {
		if _, err := b.Submit(t.Context(), said("hello", func(m *adapters.Message) { m.Message = fmt.Sprint(len(d.inputs)) + "m" })); err != nil {
			t.Fatal(err)
		}
	}
	if a, z := d.inputs[0].TraceID, d.inputs[1].TraceID; len(a) != 32 || a == z {
		t.Errorf("trace ids %q and %q, want two of 32 digits", a, z)
	}
	d.err = channel.ErrFull
	if _, err := b.Submit(t.Context(), said("hello")); !errors.Is(err, ErrRefused) || len(d.published) != 1 {
		t.Errorf("%v and %d notices", err, len(d.published))
	}
}
