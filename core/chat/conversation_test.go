package chat_test

import (
	"testing"

	"mimikit/core/chat"
)

func TestKeysAreReadBack(t *testing.T) {
	t.Parallel()
	seen := map[string]chat.Conversation{}
	for _, c := range []chat.Conversation{
		{Platform: "slack", Workspace: "T1", Place: "C1", Thread: "1763692800.000100"},
		{Platform: "slack", Workspace: "T1", Place: "C1"},
		{Platform: "discord", Place: "42", Thread: "43"},
		{Platform: "console", Workspace: "local", Place: "ann/bob"},
		{Platform: "console", Workspace: "local/ann", Place: "bob"},
		{Platform: "console", Workspace: "%2F", Place: "a b{c}:d", Thread: "é\n"},
	} {
		key := c.Key()
		got, err := chat.ParseConversation(key)
		if err != nil || got != c {
			t.Errorf("%q is read back as %+v, %v", key, got, err)
		}
		if other, taken := seen[key]; taken {
			t.Errorf("%+v and %+v share the key %q", c, other, key)
		}
		seen[key] = c
	}
}

func TestWhatIsNoKeyIsRefused(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "slack", "slack/T/C", "slack/T/C/1/2", "/T/C/", "slack/T//1", "slack/T/%zz/"} {
		if c, err := chat.ParseConversation(key); err == nil {
			t.Errorf("%q was read as %+v", key, c)
		}
	}
}
