package discord

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/adapters/adaptertest/discordfake"
	"mimikit/adapters/discord/gateway"
	"mimikit/core/chat"
)

type taker struct{}

func (taker) Submit(context.Context, adapters.Message) (adapters.Receipt, error) {
	return adapters.Receipt{Duplicate: true}, nil
}

func (taker) Stop(context.Context, adapters.Message) (adapters.Receipt, error) {
	return adapters.Receipt{}, nil
}

// From a frame's data to the inbox, without what a store costs: a message in a
// thread that the bot takes part in, and one that is not for it.
func BenchmarkHandle(b *testing.B) {
	for name, channel := range map[string]string{"heard": "22", "ignored": "33"} {
		b.Run(name, func(b *testing.B) {
			d, err := New(Options{BotToken: "x"})
			if err != nil {
				b.Fatal(err)
			}
			d.bot.id, d.bot.app, d.api.http = "9", "9", &http.Client{Transport: nobody{}}
			if err := d.talks.keep(b.Context(), "22", chat.Conversation{Platform: Platform, Workspace: "5", Place: "21", Thread: "22"}, true); err != nil {
				b.Fatal(err)
			}
			data := fmt.Appendf(nil, `{"id":"1500000000000000000","channel_id":%q,"guild_id":"5","channel_type":11,"author":{"id":"3","username":"ann","global_name":"Ann"},`+
				`"member":{"nick":null,"roles":["1","2"],"joined_at":"2024-01-01T00:00:00+00:00"},"content":"what do you think of <@4>?","mentions":[{"id":"4","username":"bob"}],`+
				`"mention_roles":[],"attachments":[],"embeds":[],"timestamp":"2026-01-01T00:00:00+00:00","edited_timestamp":null,"type":0,"flags":0}`, channel)
			b.ReportAllocs()
			for b.Loop() {
				if err := d.handle(b.Context(), taker{}, gateway.Event{Type: "MESSAGE_CREATE", Seq: 1, Data: data}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A counter is an inbox that tells when it has had enough.
type counter struct {
	left   atomic.Int64
	enough chan struct{}
}

func (c *counter) Submit(context.Context, adapters.Message) (adapters.Receipt, error) {
	if c.left.Add(-1) == 0 {
		close(c.enough)
	}
	return adapters.Receipt{Duplicate: true}, nil // what is new is shown to be heard, which Discord paces
}

func (c *counter) Stop(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	return c.Submit(ctx, m)
}

// From a frame on the gateway's socket to the inbox, over loopback: messages in a
// thread that the bot takes part in, which wait in the session when it begins. The
// store behind the inbox and what nodes share are in memory.
func BenchmarkListener(b *testing.B) {
	for name, compress := range map[string]bool{"plain": false, "zlib": true} {
		b.Run(name, func(b *testing.B) {
			fake := discordfake.New()
			if err := fake.Start(); err != nil {
				b.Fatal(err)
			}
			defer fake.Close()
			ann := fake.NewUser("ann")
			thread := fake.NewThread(fake.NewChannel(fake.NewGuild("home", ann), "general", discordfake.Text), "talk", ann)
			d, err := New(Options{BotToken: discordfake.Token, APIURL: fake.URL(), Compress: compress})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			const most = 15_000 // that a session can replay
			run := func(n int) time.Duration {
				in := &counter{enough: make(chan struct{})}
				in.left.Store(int64(n))
				ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
				defer cancel()
				begin := time.Now()
				ended := make(chan error, 1)
				go func() { ended <- d.Listener.Run(ctx, in) }()
				select {
				case <-in.enough:
				case <-ctx.Done():
					b.Fatal("not all came")
				}
				took := time.Since(begin)
				cancel()
				if err := <-ended; err != nil {
					b.Fatal(err)
				}
				return took
			}
			begun := make(chan struct{})
			go func() {
				defer close(begun)
				_ = fake.Await(b.Context(), func() bool { return fake.Stats().Connected > 0 })
				fake.Say(thread, ann, fake.Mention()+" join us")
			}()
			run(1)
			<-begun
			b.ResetTimer()
			b.StopTimer()
			var took time.Duration
			for left := b.N; left > 0; left -= most {
				n := min(left, most)
				for range n {
					fake.Say(thread, ann, "what do you think of that?")
				}
				b.StartTimer()
				took += run(n)
				b.StopTimer()
			}
			b.ReportMetric(float64(b.N)/took.Seconds(), "events/s")
		})
	}
}

func BenchmarkRender(b *testing.B) {
	text := ""
	for range 20 {
		text += "A *paragraph* with `code` and a [link](https://example.com).\n\n- one\n- two\n\n```go\nx := 1\n```\n\n"
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		renderParts(text)
	}
}
