package prompts

import (
	"strings"
	"testing"
	"time"

	"mimikit/core/chat"
)

func BenchmarkCompose(b *testing.B) {
	set, err := Open("")
	if err != nil {
		b.Fatal(err)
	}
	long := plain()
	long.Final = true
	texts := []string{
		"what port does redis use by default, and where do we set ours?",
		"6379, unless configured otherwise. Ours is set in `config.yaml`:\n\n```yaml\nredis:\n  addr: \"127.0.0.1:6380\"\n```\n\n" + strings.Repeat("Some more words about it. ", 8),
		"thanks & bye!",
		"Gern. Läuft die Staging-Umgebung schon mit dem neuen Port, oder soll ich warten?",
	}
	for i := range 20 {
		l := chat.Line{ID: "i", Role: chat.LineUser, Author: chat.Author{ID: "U024BE7LH", Name: "Ann Example", Role: chat.RoleUser},
			Text: texts[i%len(texts)], At: long.Now.Add(time.Duration(i-100) * time.Second)}
		if i%2 == 1 {
			l.Role, l.Author = chat.LineAssistant, chat.Author{Name: "Mimi", Bot: true}
		}
		long.History = append(long.History, l)
	}
	for _, c := range []struct {
		name, agent string
		data        Data
	}{
		{"thinker-20-lines", "thinker", long},
		{"thinker-first", "thinker", plain()},
		{"teller-20-lines", "teller", long},
		{"thinker-hostile", "thinker", sample()},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := set.Compose(c.agent, c.data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
