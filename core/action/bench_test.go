package action

import (
	"strings"
	"testing"

	"mimikit/core/chat"
)

// What a turn costs beside the model.
func BenchmarkOffer(b *testing.B) {
	r, err := Outline(Vocabulary()...)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		o := r.For(Thinker, chat.RoleUser)
		_ = o.Tools()
		_ = o.Describe(Native)
	}
}

func BenchmarkDecodeTool(b *testing.B) {
	o := vocabulary(b, Thinker)
	b.ReportAllocs()
	for b.Loop() {
		if d := tool(o, "create_task", newTask); d.Err != nil {
			b.Fatal(d.Err)
		}
	}
}

func BenchmarkDecodeBlock(b *testing.B) {
	o := vocabulary(b, Thinker)
	text := strings.Repeat("Some words for the people. ", 40) + "\n" + block(`@create_task prompt="p" title="T" profile="standard"`)
	b.ReportAllocs()
	for b.Loop() {
		if _, calls := o.DecodeBlock(text); calls[0].Err != nil {
			b.Fatal(calls[0].Err)
		}
	}
}

// A model streams a few bytes at a time, and may write a line without end.
func BenchmarkFilterOfALongLine(b *testing.B) {
	o := vocabulary(b, Thinker)
	for name, line := range map[string]string{"text": "x", "fence": "```", "action": "@x"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f := o.Filter(func(string) {})
				f.Write(line)
				for range 16 << 10 {
					f.Write("word")
				}
				f.Close()
			}
		})
	}
}
