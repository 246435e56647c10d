package slack

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// FuzzEvents throws payloads at whatever reads what Slack sends. Nothing may
// panic, and what is stored must name its place, message and time.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		hello,
		`{"type":"event_callback","event":{"type":"message","subtype":"message_changed","channel":"C1","ts":"1795255201.000100","message":{"type":"message","user":"U1","text":"<@U0BOT> x","ts":"1795255200.000100","edited":{"ts":"1795255201.000000"}},"previous_message":{"type":"message","text":"x"}}}`,
		`{"type":"event_callback","event":{"type":"message","subtype":"message_deleted","channel":"D1","channel_type":"im","deleted_ts":"1795255200.000100","event_ts":"1795255201.000100","previous_message":{"type":"message","user":"U1"}}}`,
		`{"type":"event_callback","event":{"type":"app_mention","channel":"C1","user":"U1","text":"<@U0BOT|x> <!date^|> &amp;lt;","ts":"1795255201.000100","thread_ts":"1795255200.000100","files":[{"id":"F1","size":-1}],"attachments":[{"is_share":true}]}}`,
		`{"type":"event_callback","event":{"type":"agent_session_stopped","channel":"C1","event_ts":"1795255201.000100"}}`,
		`{"type":"event_callback","event":{"type":"app_home_opened","user":"U1","tab":"home"}}`,
		`{"type":"block_actions","user":{"id":"U1"},"actions":[{"action_id":"mimikit_press_0","value":"x"}],"message":{"type":"message","blocks":[{}]}}`,
		`{"type":"message_action","callback_id":"ask_about","user":{"id":"U1"},"channel":{"id":"D1"},"action_ts":"1795255201.000100","message":{"type":"message","ts":"1795255200.000100"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		l := deadEnd(t)
		store := &inbox{}
		a := &arrival{l: l, inbox: store}
		if _, o, err := a.event(t.Context(), payload); o == "" || o == Unstored && err == nil {
			t.Errorf("outcome %q, %v", o, err)
		}
		_, _ = l.interaction(store, payload)
		_ = laneOf(payload)
		for _, m := range append(store.all(), store.stopped()...) {
			if m.Conversation.Place == "" || m.Conversation.Platform != platform || m.Message == "" || m.At.IsZero() || m.Kind == chat.KindEdit && m.Edit == "" {
				t.Errorf("stored %+v", m)
			}
		}
		l.front.close()
		l.behind.close()
	})
}

// deadEnd is a listener that reaches nobody.
func deadEnd(t *testing.T) *Listener {
	t.Helper()
	b, err := New(Options{
		BotToken: "xoxb-1", AppToken: "xapp-1", Reading: 50 * time.Millisecond, Commands: &commands{},
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("nobody")}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.api.me = &Identity{TeamID: "T1", UserID: "U0BOT", BotID: "B0BOT"}
	b.Listener.work = t.Context()
	var in adapters.Inbox = &inbox{}
	b.Listener.inbox.Store(&in)
	return b.Listener
}
