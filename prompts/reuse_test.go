package prompts

import (
	"testing"

	"mimikit/core/llm"
)

func TestSharedPrefix(t *testing.T) {
	t.Parallel()
	sys := func(s string) llm.Message { return llm.Message{Role: llm.System, Content: s} }
	user := func(s string) llm.Message { return llm.Message{Role: llm.User, Content: s} }
	for name, c := range map[string]struct {
		a, b []llm.Message
		want int
	}{
		"nothing":                       {nil, nil, 0},
		"nothing and something":         {nil, []llm.Message{sys("abc")}, 0},
		"the same":                      {[]llm.Message{sys("abc"), user("de")}, []llm.Message{sys("abc"), user("de")}, 5},
		"one message more":              {[]llm.Message{sys("abc")}, []llm.Message{sys("abc"), user("de")}, 3},
		"a longer message":              {[]llm.Message{sys("abc"), user("de")}, []llm.Message{sys("abcd"), user("de")}, 3},
		"the end differs":               {[]llm.Message{sys("abc"), user("de")}, []llm.Message{sys("abc"), user("dx"), user("y")}, 4},
		"another role":                  {[]llm.Message{sys("abc")}, []llm.Message{user("abc")}, 0},
		"nothing after what differs":    {[]llm.Message{sys("ab"), user("de")}, []llm.Message{sys("ac"), user("de")}, 1},
		"an empty message between":      {[]llm.Message{sys("ab"), user(""), user("x")}, []llm.Message{sys("ab"), user(""), user("x")}, 3},
		"characters that begin alike":   {[]llm.Message{sys("aé")}, []llm.Message{sys("aè")}, 1},
		"a character that is one whole": {[]llm.Message{sys("aé")}, []llm.Message{sys("aéb")}, 3},
	} {
		if got := SharedPrefix(c.a, c.b); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
	words := func(s string) int { return len(s) + 100 } // each text that is counted counts
	r := Shared([]llm.Message{sys("abc"), user("de")}, []llm.Message{sys("abc"), user("dx"), user("yz")}, words)
	if want := (Reuse{Bytes: 4, Tokens: 204, Total: 307}); r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
}
