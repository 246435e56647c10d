package history

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mimikit/core/chat"
)

// spellings are lines as Encode writes them, as a newer or a sloppy program
// might, and as nobody should. read says whether our own reader must do.
var spellings = []struct {
	name string
	s    string
	read bool
}{
	{"as Encode writes", `{"id":"i1","role":"user","author":{"id":"U1","name":"Ann","role":1,"bot":true},"text":"hi","note":"edited","at":"2026-11-21T10:00:00.123456789Z"}`, true},
	{"least", `{"role":"user"}`, true},
	{"any order, space", " {\t\"at\" : \"2026-11-21T10:00:00Z\" ,\n\"author\": { } , \"text\":\"x\",\r\"role\":\"system\" } ", true},
	{"all escapes", `{"role":"user","text":"\"\\\/\b\f\n\r\t\u00e4\u4F60 \uD83D\ude00 <&> é 你\u007f\u0000"}`, true},
	{"a long text", `{"role":"user","text":"` + strings.Repeat(`0123456\n9ü`, 500) + `"}`, true},
	{"unknown keys", `{"role":"user","n":12,"b":false,"s":"x\ty","z":null,"author":{"id":"1","team":"T"}}`, true},
	{"an author in two parts", `{"author":{"id":"1","name":"a"},"role":"user","author":{"role":2,"name":"b"}}`, true},
	{"keys twice", `{"role":"user","text":"a","role":"system","text":"b"}`, true},
	{"a zone", `{"role":"user","at":"2026-11-21T12:00:00+02:00"}`, true},
	{"a broken zone, which Go takes", `{"role":"user","at":"2026-11-21T1:00:00,5Z"}`, true},
	{"no role", `{"id":"x"}`, true},

	{"unknown list", `{"role":"user","files":[{"a":1}],"o":{"p":-1.5e3}}`, false},
	{"another case", `{"Role":"user","TEXT":"x","author":{"ID":"1"}}`, false},
	{"a folded letter", `{"role":"user","ſ":"x","author":{"ıd":"1"},"TeXt":"x"}`, false},
	{"null", `{"role":"user","text":null,"author":null,"at":null}`, false},
	{"a lone surrogate", `{"role":"user","text":"\ud83d x \ude00"}`, false},
	{"surrogates the wrong way", `{"role":"user","text":"\ude00\ud83d"}`, false},
	{"half a surrogate", `{"role":"user","text":"\ud83d\u12"}`, false},
	{"no UTF-8", "{\"role\":\"user\",\"text\":\"a\xffb\xc3\",\"\xff\":1}", false},
	{"escaped time", `{"role":"user","at":"2026-11-21T10:00:00\u005a"}`, false},
	{"no time", `{"role":"user","at":"yesterday"}`, false},
	{"a role of 00", `{"role":"user","author":{"role":00}}`, false},
	{"a fraction", `{"role":"user","author":{"role":1.5}}`, false},
	{"a large number", `{"role":"user","author":{"role":12345678901}}`, false},
	{"below nothing", `{"role":"user","author":{"role":-1}}`, false},
	{"another type", `{"role":1}`, false},
	{"bad escape", `{"role":"user","text":"\x"}`, false},
	{"an apostrophe is none", `{"role":"user","text":"\'"}`, false},
	{"control character", "{\"role\":\"user\",\"text\":\"a\nb\"}", false},
	{"more behind", `{"role":"user"}x`, false},
	{"comma at the end", `{"role":"user",}`, false},
	{"no comma", `{"role":"user" "text":"x"}`, false},
	{"no value", `{"role":}`, false},
	{"a list", `[]`, false},
	{"nothing", ``, false},
	{"open", `{"role":"user"`, false},
	{"open string", `{"role":"us\`, false},
}

// same fails unless Decode and encoding/json say the same of s.
func same(t *testing.T, s string) {
	t.Helper()
	want, err := decode(s)
	var got chat.Line
	err2 := decodeTo(s, &got)
	switch {
	case err != nil || want.Role == "":
		if err2 == nil {
			t.Errorf("%q: got %+v, want an error: %v", s, got, err)
		}
		if err != nil && err2 != nil && err2.Error() != "decode history line: "+err.Error() {
			t.Errorf("%q: got error %v, want %v", s, err2, err)
		}
	case err2 != nil:
		t.Errorf("%q: %v, want %+v", s, err2, want)
	// Not even the zones of the times may differ: prompts and caches show them.
	case got != want && cmp.Diff(want, got) != "" || got.At.String() != want.At.String():
		t.Errorf("%q: -want +got:\n%s", s, cmp.Diff(want, got))
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, c := range spellings {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			same(t, c.s)
			if ok := read(c.s, new(chat.Line)); ok != c.read {
				t.Errorf("our reader does: %v, want %v", ok, c.read)
			}
			for n := range c.s { // whatever is missing at the end
				same(t, c.s[:n])
			}
		})
	}
}

// What Encode writes is read without encoding/json: else the reader is for
// nothing, and nobody would notice.
func TestDecodeReadsWhatEncodeWrites(t *testing.T) {
	t.Parallel()
	for _, l := range append(talk(4), chat.Line{Role: "x", Text: "\x00\x1f\u2028\U0001F600\"\\\r", At: epoch.In(time.FixedZone("", 5400))}) {
		var got chat.Line
		if ok := read(Encode(l), &got); !ok || !got.At.Equal(l.At) || got.Text != l.Text {
			t.Errorf("%q: %v, got %+v", Encode(l), ok, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range spellings {
		f.Add(c.s)
	}
	f.Fuzz(same)
}

func FuzzEncode(f *testing.F) {
	f.Add("i1", "user", "U1", "Ann", 1, false, "hi", "", int64(1795255200), int64(0), 0)
	f.Add("", "", "", "", 0, false, "", "", int64(-62135596800), int64(0), 0)
	f.Add("a\"b", "\\", "\x00\x1f", "<&>\x7f", -3, true, "ä\u2028\u2029 你\n\r\t\b\f", "\xff", int64(1), int64(1200300), 5400)
	f.Add("0123456\n", "01234567\"", "", "", 0, true, "\xe2\x80", "😀", int64(1)<<40, int64(5), -3601)
	f.Fuzz(func(t *testing.T, id, role, author, name string, rights int, bot bool, text, note string, sec, nsec int64, zone int) {
		l := chat.Line{
			ID: id, Role: chat.LineRole(role), Author: chat.Author{ID: author, Name: name, Role: chat.Role(rights), Bot: bot},
			Text: text, Note: note, At: time.Unix(sec, nsec).In(time.FixedZone("", zone%200000)),
		}
		want, got := encode(l), Encode(l)
		if got != want {
			t.Errorf("-want +got:\n%s", cmp.Diff(want, got))
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%q is no JSON", got)
		}
		same(t, got)
	})
}

// Lines out of order, with repetitions near and far, against a map of all.
func TestAgainFindsWhatCameBefore(t *testing.T) {
	t.Parallel()
	type said struct {
		id string
		at int64
	}
	seen := map[said]bool{}
	var lines []placed
	state, found := uint32(1), 0
	for range 2000 {
		state = state*1664525 + 1013904223
		line := chat.Line{ID: string(rune('a' - 1 + state>>28)), At: epoch.Add(time.Duration(len(lines)-int(state>>20&15)*7) * 250 * time.Microsecond)}
		if state>>28 == 0 {
			line.ID = ""
		}
		once := said{line.ID, line.At.UnixMilli()}
		p := placed{line: line}
		again := p.again(lines)
		if want := line.ID != "" && seen[once]; again != want {
			t.Fatalf("line %d, %+v: again is %v, want %v", len(lines), line, again, want)
		}
		if seen[once] = true; again {
			found++
		} else {
			lines = append(lines, p)
		}
	}
	if found < 20 {
		t.Errorf("only %d lines came again; the test shows nothing", found)
	}
}
