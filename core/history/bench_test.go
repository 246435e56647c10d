package history

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// talk is a conversation as teams have them: mostly short lines, some with line
// breaks, code and letters beyond ASCII.
func talk(n int) []chat.Line {
	ann := chat.Author{ID: "U024BE7LH", Name: "Ann Example", Role: chat.RoleUser}
	texts := []string{
		"what port does redis use by default, and where do we set ours?",
		"6379, unless configured otherwise. Ours is set in `config.yaml`:\n\n```yaml\nredis:\n  addr: \"127.0.0.1:6380\"\n```\n\n" + strings.Repeat("Some more words about it. ", 8),
		"thanks!",
		"Gern. Läuft die Staging-Umgebung schon mit dem neuen Port, oder soll ich warten?",
	}
	out := make([]chat.Line, n)
	for i := range out {
		l := chat.Line{
			ID: fmt.Sprintf("i-%024d", i), Role: chat.LineUser, Author: ann,
			Text: texts[i%len(texts)], At: epoch.Add(time.Duration(i) * 1234 * time.Millisecond),
		}
		if i%2 == 1 {
			l.Role, l.Author = chat.LineAssistant, chat.Author{Name: "Mimi", Bot: true}
		}
		out[i] = l
	}
	return out
}

func BenchmarkEncode(b *testing.B) {
	lines := talk(4)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = Encode(lines[i%len(lines)])
	}
}

func BenchmarkDecode(b *testing.B) {
	var lines []string
	for _, l := range talk(4) {
		lines = append(lines, Encode(l))
	}
	b.Run("reader", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := Decode(lines[i%len(lines)]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			var l chat.Line
			if err := json.Unmarshal([]byte(lines[i%len(lines)]), &l); err != nil {
				b.Fatal(err)
			}
		}
	})
}

var thinker = Limits{Min: 20, Max: 100, Bytes: 20 << 10}

// BenchmarkWindow reads a window through a real client; "memory" is what is left
// of it without Redis. On miniredis the server's time and allocations count too.
func BenchmarkWindow(b *testing.B) {
	ctx := context.Background()
	for _, n := range []int{2, 20, 100} {
		var values []string
		for _, l := range talk(n) {
			values = append(values, Encode(l))
		}
		b.Run(fmt.Sprintf("memory/%d-lines", n), func(b *testing.B) {
			s := New(nil, nil, nil)
			b.ReportAllocs()
			for b.Loop() {
				lines := s.decode("c", values, 0)
				current(lines)
				_ = texts(window(lines, n, thinker))
			}
		})
		for name, open := range map[string]func(testing.TB) *store.Store{"miniredis": storetest.Mini, "redis": storetest.Redis} {
			b.Run(fmt.Sprintf("%s/%d-lines", name, n), func(b *testing.B) {
				client, key := open(b).Client, storetest.Prefix(b)+"{0}"
				if err := client.RPush(ctx, key, values).Err(); err != nil {
					b.Fatal(err)
				}
				s := New(client, func(string) string { return key }, nil)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.Window(ctx, "c", thinker); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
