package discord

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"mimikit/adapters"
	"mimikit/adapters/discord/gateway"
)

// nobody answers every request with a refusal, without a network.
type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 404, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"code":10003}`))}, nil
}

// strict checks what comes out of the listener as the real inbox would.
type strict struct{ t *testing.T }

func (s strict) Submit(_ context.Context, m adapters.Message) (adapters.Receipt, error) {
	if m.Conversation.Platform != Platform || !isID(m.Conversation.Place) || !isID(m.Message) || m.At.IsZero() || m.Kind == "" {
		s.t.Errorf("submitted %+v", m)
	}
	return adapters.Receipt{}, nil
}

func (s strict) Stop(ctx context.Context, m adapters.Message) (adapters.Receipt, error) {
	return s.Submit(ctx, m)
}

// No event makes the listener panic, or submit what is no message.
func FuzzEvents(f *testing.F) {
	for _, s := range []struct{ kind, data string }{
		{"MESSAGE_CREATE", `{"id":"1500000000000000000","channel_id":"2","author":{"id":"3","username":"a"},"content":"hi <@9> <t:99999999999999:R>","type":0,"mentions":[{"id":"9"}],"attachments":[{"id":"4","filename":"a.txt","size":3,"url":"https://cdn.discordapp.com/a"}]}`},
		{"MESSAGE_CREATE", `{"id":"1500000000000000000","channel_id":"2","guild_id":"5","channel_type":0,"author":{"id":"3"},"member":{"nick":null,"roles":["1"]},"content":"x","message_reference":{"type":0,"message_id":"8"},"referenced_message":{"id":"8","author":{"id":"9"},"message_reference":{"message_id":"7"}},"message_snapshots":[{"message":{"content":"y"}}]}`},
		{"MESSAGE_UPDATE", `{"id":"1","channel_id":"2","author":{"id":"3"},"content":"x","edited_timestamp":"2026-01-01T00:00:00.000000+00:00"}`},
		{"MESSAGE_DELETE_BULK", `{"ids":["1","2"],"channel_id":"2"}`},
		{"MESSAGE_DELETE", `{"id":"1","channel_id":"2","guild_id":"3"}`},
		{"INTERACTION_CREATE", `{"id":"1","type":2,"token":"t","channel_id":"2","guild_id":"3","member":{"user":{"id":"4"},"permissions":"32"},"data":{"name":"mimikit","type":1,"options":[{"name":"tasks","type":1,"options":[{"name":"a","type":3,"value":"b"}]}]}}`},
		{"INTERACTION_CREATE", `{"id":"1","type":2,"token":"t","channel_id":"2","user":{"id":"4"},"data":{"type":3,"target_id":"6","resolved":{"messages":{"6":{"id":"6","content":"z"}}}}}`},
		{"INTERACTION_CREATE", `{"id":"1","type":4,"token":"t","channel_id":"2","user":{"id":"4"},"data":{"options":[{"name":"a","options":[{"focused":true,"value":7}]}]}}`},
		{"GUILD_CREATE", `{"id":"1","channels":[{"id":"2","type":0}],"threads":[{"id":"3","type":11,"parent_id":"2"}]}`},
		{"THREAD_DELETE", `null`}, {"MESSAGE_CREATE", `[]`}, {"MESSAGE_CREATE", `{"id":-1}`}, {"INTERACTION_CREATE", `7`},
	} {
		f.Add(s.kind, []byte(s.data))
	}
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		if !json.Valid(data) {
			return // the gateway would not have read it
		}
		d, err := New(Options{BotToken: "x", APIURL: "http://discord.test"})
		if err != nil {
			t.Fatal(err)
		}
		d.bot.id, d.bot.app, d.api.http = "9", "9", &http.Client{Transport: nobody{}}
		var i interaction
		if json.Unmarshal(data, &i) == nil {
			i.words(nil)
			i.focused()
			i.person()
		}
		var seen Outcome
		d.o.Hooks.Event = func(_ string, o Outcome) { seen = o }
		err = d.handle(t.Context(), strict{t}, gateway.Event{Type: kind, Seq: 1, Data: data})
		var refused *apiError
		if err != nil && !errors.As(err, &refused) {
			t.Errorf("%s is to come again: %v", kind, err)
		}
		if seen == Panicked {
			t.Errorf("%s %s made it panic", kind, data)
		}
	})
}
