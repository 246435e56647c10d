package discord

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/core/chat"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    Options
		word string
	}{
		{Options{}, "token"},
		{Options{BotToken: "a b"}, "space"},
		{Options{BotToken: "x", APIURL: "ftp://y"}, "ftp://y"},
		{Options{BotToken: "x", Mode: "loud"}, "loud"},
		{Options{BotToken: "x", Shards: -1}, "-1"},
	} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%+v: %v, want an error that speaks of %q", c.o, err, c.word)
		}
	}
	d, err := New(Options{BotToken: " Bot abc\n"})
	if err != nil || d.o.BotToken != "abc" || d.o.intents() != 1<<0|1<<9|1<<12|1<<15 {
		t.Errorf("%+v, %v", d, err)
	}
	if d, _ := New(Options{BotToken: "abc", NoContent: true}); d.o.intents() != 1<<0|1<<9|1<<12 {
		t.Errorf("intents %d", d.o.intents())
	}
}

func TestInviteLink(t *testing.T) {
	t.Parallel()
	link, err := InviteLink(Invite{App: "123", Guild: "456"})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if u.Host != "discord.com" || q.Get("client_id") != "123" || q.Get("scope") != "bot applications.commands" || q.Get("permissions") != "309237746752" || q.Get("guild_id") != "456" {
		t.Errorf("link %s", link)
	}
	if less, err := InviteLink(Invite{App: "123", Mode: PlainReply}); err != nil || !strings.Contains(less, "permissions=274878008384") {
		t.Errorf("link %s, %v", less, err)
	}
	for _, bad := range []Invite{{}, {App: "x"}, {App: "1", Guild: "&"}} {
		if _, err := InviteLink(bad); err == nil {
			t.Errorf("%+v has a link", bad)
		}
	}
}

func TestCheck(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		says := func(change ...func(*Options)) string {
			t.Helper()
			var b strings.Builder
			for _, f := range r.discord(change...).Check(t.Context()) {
				b.WriteString(map[bool]string{true: "+ ", false: "- "}[f.OK] + f.What + ": " + f.Say + "\n")
				if f.OK != (f.Mend == "") {
					t.Errorf("finding %+v", f)
				}
			}
			return b.String()
		}
		want := func(got string, words ...string) {
			t.Helper()
			for _, w := range words {
				if !strings.Contains(got, w) {
					t.Errorf("%q is not in:\n%s", w, got)
				}
			}
		}
		want(says(), "+ Discord bot token: bot mimi", "+ Discord message content intent", "+ Discord gateway: 1000 new sessions", "- Discord server home: missing", `"Send Messages in Threads" (to answer)`)
		r.fake.Permit(r.guild, r.fake.Bot(), 309237746752)
		r.fake.AllowIntents(0)
		want(says(), "+ Discord server home: all permissions", "- Discord message content intent: switched off")
		want(says(func(o *Options) { o.NoContent = true }), "+ Discord message content intent: not used")
		want(says(func(o *Options) { o.BotToken = "wrong" }), "- Discord bot token: Discord does not accept it")
	})
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	m := &message{Mentions: []user{{ID: "9", Username: "mimi"}, {ID: "5", Username: "ann", GlobalName: "Ann"}}}
	for in, want := range map[string]string{
		"<@9> hi":                       "hi",
		"<@!9>, hi":                     "hi",
		"hi <@9>":                       "hi",
		"ask <@9> or <@5>":              "ask @mimi or @Ann",
		"<@77> <@&1> <#2>":              "<@77> <@&1> <#2>",
		"<:smile:123> <a:wave:4>":       ":smile: :wave:",
		"at <t:1763719200:R>":           "at 2025-11-21 10:00 UTC",
		"<t:99999999999999999999>":      "<t:99999999999999999999>",
		"</mimikit tasks:123>":          "/mimikit tasks",
		"<@9>":                          "(mentioned you without a word)",
		"<@9> <@9> twice":               "<@9> twice",
		"a < b > c <@ 5> <@5":           "a < b > c <@ 5> <@5",
		"two\nlines\t<@5>":              "two\nlines\t@Ann",
		"<https://example.com/?a=<@5>>": "<https://example.com/?a=@Ann>",
	} {
		m.Content = in
		if want == "<@9> twice" {
			want = "@mimi twice"
		}
		if got := plainText(m, "9"); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestThreadNames(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<@9> what is **up**?\nsecond line": "what is up ? second line",
		"":                                  "Conversation",
		"<@9>":                              "Conversation",
		strings.Repeat("ab ", 60):           strings.Repeat("ab ", 26) + "a…",
	} {
		if got := threadName(in); got != want {
			t.Errorf("%q is named %q, want %q", in, got, want)
		}
	}
}

func TestSnowflakes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	if got := TimeOf(idAt(at)); !got.Equal(at) {
		t.Errorf("got %v", got)
	}
	if compareIDs("9", "10") >= 0 || compareIDs("11", "10") <= 0 || compareIDs("7", "7") != 0 {
		t.Error("ids are out of order")
	}
	for in, want := range map[string]string{`"12"`: "12", `12`: "12", `null`: "", `"x"`: "", `"../1"`: "", `1.5`: "", `"123456789012345678901"`: ""} {
		var s snowflake
		if err := json.Unmarshal([]byte(in), &s); err != nil || string(s) != want {
			t.Errorf("%s is %q (%v), want %q", in, s, err, want)
		}
	}
}

// A node that keeps to the limit of its budget never waits for what is free, and
// remembers no more buckets than it may.
func TestBuckets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	l := newLimits(func() time.Time { return now })
	header := func(left string) http.Header {
		return http.Header{"X-Ratelimit-Bucket": {"b"}, "X-Ratelimit-Limit": {"5"}, "X-Ratelimit-Remaining": {left}, "X-Ratelimit-Reset-After": {"2.5"}}
	}
	for i := range 3 * mostBuckets {
		route := "GET /channels/" + idAt(now.Add(time.Duration(i)*time.Millisecond)) + "/messages"
		if wait := l.try(route, Final); wait != 0 {
			t.Fatalf("request %d waits %v", i, wait)
		}
		l.learn(route, 200, header("4"))
		now = now.Add(100 * time.Millisecond)
	}
	if len(l.buckets) > mostBuckets || len(l.names) > mostBuckets {
		t.Errorf("%d buckets, %d names", len(l.buckets), len(l.names))
	}
	const route = "POST /channels/1/messages"
	l.try(route, Final)
	l.learn(route, 200, header("2"))
	for _, c := range []struct {
		s    Priority
		room bool
	}{{Edit, false}, {Status, false}, {Question, true}, {Final, true}} {
		if wait := l.try(route, c.s); (wait == 0) != c.room {
			t.Errorf("share %v waits %v with 2 of 5 left", c.s, wait)
		}
	}
	if wait := l.try(route, Final); wait != 2500*time.Millisecond {
		t.Errorf("waits %v with nothing left, want until it resets", wait)
	}
	l.learn(route, 200, header("1"))
	l.learn(route, 200, header("0"))
	now = now.Add(3 * time.Second)
	if wait := l.try(route, Edit); wait != 0 {
		t.Errorf("waits %v after the reset", wait)
	}
	// Nonsense in headers changes nothing.
	for _, h := range []http.Header{nil, {}, {"X-Ratelimit-Bucket": {"b"}, "X-Ratelimit-Limit": {"-1"}}, {"X-Ratelimit-Bucket": {"b"}, "X-Ratelimit-Limit": {"5"}, "X-Ratelimit-Remaining": {"9"}, "X-Ratelimit-Reset-After": {"NaN"}}} {
		l.learn(route, 200, h)
	}
	l.refused(route, &apiError{Status: 401})
	if wait := l.try("GET /users/@me", Final); wait <= 0 {
		t.Error("it goes on asking with a wrong token")
	}
}

func TestTooManyRefusals(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	l := newLimits(func() time.Time { return now })
	for range mostInvalid {
		l.refused("GET /x", &apiError{Status: 403})
	}
	if wait := l.try("GET /y", Final); wait < 9*time.Minute {
		t.Errorf("waits %v after %d refusals", wait, mostInvalid)
	}
	now = now.Add(invalidSpan)
	if wait := l.try("GET /y", Final); wait != 0 {
		t.Errorf("waits %v ten minutes later", wait)
	}
}

// Files come from Discord's own hosts only, whatever a message says.
func TestDownloads(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		m := r.fake.Say(r.dm().Place, r.ann, "x", r.fake.Attaching("a.txt", "text/plain", []byte("hello")))
		link := r.fake.Link(m.Attachments[0])
		fetch := func(from string, most int64) (string, error) {
			var b strings.Builder
			err := d.Files.Fetch(t.Context(), "", chat.Attachment{URL: from}, &b, most)
			return b.String(), err
		}
		if got, err := fetch(link, 5); err != nil || got != "hello" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := fetch(link, 4); !errors.Is(err, ErrFileTooLarge) {
			t.Errorf("took more than it may: %v", err)
		}
		if err := d.Files.Fetch(t.Context(), m.ID, chat.Attachment{URL: link, Size: 5}, io.Discard, 4); !errors.Is(err, ErrFileTooLarge) {
			t.Errorf("asked for more than it may: %v", err)
		}
		for _, from := range []string{"http://169.254.169.254/latest", "https://example.com/a", "file:///etc/passwd", "http://cdn.discordapp.com/x", "https://cdn.discordapp.com.evil.example/x", "", "%"} {
			if _, err := fetch(from, 10); err == nil || strings.Contains(from, "//") && !strings.Contains(err.Error(), "no address of Discord's files") {
				t.Errorf("fetched %q: %v", from, err)
			}
		}
	})
}

// Only of a link that may have run out it is said that links do.
func TestWordsOfALinkThatFails(t *testing.T) {
	for status, over := range map[int]bool{403: true, 404: true, 302: false, 429: false, 503: false} {
		if said := (&linkError{status, "as it is"}).Error(); strings.Contains(said, "work for a day") != over {
			t.Errorf("%d: %s", status, said)
		}
	}
}

// A link that does not work any more is asked for anew, once, where the file's message
// is known and has it still.
func TestDownloadsAfterADay(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		m := r.fake.Say(r.place, r.ann, "x", r.fake.Attaching("a.txt", "text/plain", []byte("hello")), r.fake.Attaching("b.txt", "text/plain", []byte("other")))
		a := m.Attachments[0]
		old := chat.Attachment{ID: a.ID, Name: a.Filename, URL: r.fake.Link(a)}
		const route = "GET /channels/{channel}/messages/{message}"
		fetch := func(message string, a chat.Attachment) (string, error) {
			var b strings.Builder
			err := d.Files.Fetch(t.Context(), message, a, &b, 100)
			return b.String(), err
		}
		if got, err := fetch(m.ID, old); err != nil || got != "hello" || len(r.fake.Calls(route)) != 0 {
			t.Errorf("on the same day: %q, %v, %d messages read", got, err, len(r.fake.Calls(route)))
		}
		r.fake.ExpireLinks()
		for range 2 { // what is kept of the file stays as it was
			if got, err := fetch(m.ID, old); err != nil || got != "hello" {
				t.Errorf("later: %q, %v", got, err)
			}
		}
		if n := len(r.fake.Calls(route)); n != 2 {
			t.Errorf("the message was read %d times", n)
		}
		forged := old
		forged.URL = strings.Replace(r.fake.Link(m.Attachments[1]), m.Attachments[1].ID, a.ID, 1)
		if got, err := fetch(m.ID, forged); err != nil || got != "hello" {
			t.Errorf("with a signature of another: %q, %v", got, err)
		}
		gone := old
		gone.ID = "7"
		for message, c := range map[string]struct {
			a    chat.Attachment
			want string
		}{
			"": {old, "it is not known in which message"}, "../../users": {old, "it is not known in which message"}, m.ID: {gone, "does not have the file any more"}, "77": {old, "read its message again"},
		} {
			if got, err := fetch(message, c.a); err == nil || got != "" || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "work for a day") || strings.Contains(err.Error(), "hm=") {
				t.Errorf("message %q: %q, %v; want %q", message, got, err, c.want)
			}
		}
		r.fake.Delete(m.ID)
		if _, err := fetch(m.ID, old); err == nil || !strings.Contains(err.Error(), "read its message again") {
			t.Errorf("of a message that is gone: %v", err)
		}
	})
}

// Nothing that is logged or returned has a token in it.
func TestSecretsStayIn(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		d := r.discord()
		r.fake.Fail(discordfake.Fault{Status: 403, Code: 50013})
		err := d.api.do(t.Context(), request{method: "POST", path: "/interactions/1/secret-act/callback"}, nil)
		r.fake.Heal()
		r.fake.Fail(discordfake.Fault{Status: 400, Code: 50035, Times: 1, Body: "I was sent Bot " + discordfake.Token})
		err3 := d.api.do(t.Context(), request{method: "PATCH", path: "/channels/1/messages/2", route: "PATCH /channels/1/messages/{message}"}, nil)
		if err3 == nil || !strings.Contains(err3.Error(), "I was sent Bot [secret]") {
			t.Errorf("error %v", err3)
		}
		_ = r.pipe.Close()
		d.Close()
		err4 := d.fetch(t.Context(), "https://cdn.discordapp.com/a?hm=secret-act", io.Discard, 10)
		err2 := d.api.do(t.Context(), request{method: "PATCH", path: "/webhooks/1/secret-act/messages/@original"}, nil)
		for _, err := range []error{err, err2, err3, err4} {
			if err == nil || strings.Contains(err.Error(), "secret-act") || strings.Contains(err.Error(), discordfake.Token) {
				t.Errorf("error %v", err)
			}
		}
	})
}

// Over a real socket, with the clients that a process has.
func TestOverLoopback(t *testing.T) {
	t.Parallel()
	fake := discordfake.New()
	if err := fake.Start(); err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	ann := fake.NewUser("ann")
	b := &inbox{}
	d, err := New(Options{BotToken: discordfake.Token, APIURL: fake.URL(), Compress: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	run, stop := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.Listener.Run(run, b) }()
	if err := fake.Await(ctx, func() bool { return fake.Stats().Connected == 1 }); err != nil {
		t.Fatal(err)
	}
	dm := fake.DirectChannel(ann)
	m := fake.Say(dm, ann, "hi")
	if err := fake.Await(ctx, func() bool { return len(fake.Typed(dm)) > 0 }); err != nil {
		t.Fatal(err)
	}
	if got := b.all(); len(got) != 1 || got[0].Message != m.ID {
		t.Errorf("heard %+v", got)
	}
	for _, p := range d.Poster.Split(chat.Reply{ID: "r", Text: "hello", ReplyTo: m.ID, CreatedAt: time.Now()}) {
		if _, err := d.Poster.Post(ctx, b.all()[0].Conversation, p); err != nil {
			t.Error(err)
		}
	}
	if said := fake.Said(dm); len(said) != 1 || said[0].Content != "hello" {
		t.Errorf("said %+v", said)
	}
	stop(errStop)
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}
