package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"
)

// Whatever the pieces, the beginning and the end are kept.
func TestOutputKeepsBothEnds(t *testing.T) {
	t.Parallel()
	check := func(pieces []string, most uint8) bool {
		m := int(most)%40 + 2
		o := newOutput(m)
		all := ""
		for _, p := range pieces {
			p = fmt.Sprintf("%x", p) // plain letters, so that ends compare as bytes
			_, _ = o.Write([]byte(p))
			all += p
		}
		got, omitted := o.text()
		half := m / 2
		if len(all) <= 2*half {
			return got == all && omitted == 0
		}
		return omitted == int64(len(all)-2*half) && strings.HasPrefix(got, all[:half]+"\n[") && strings.HasSuffix(got, "]\n"+all[len(all)-half:])
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

func TestOutputCutsBetweenLetters(t *testing.T) {
	t.Parallel()
	for most := 2; most < 30; most++ {
		o := newOutput(most)
		_, _ = o.Write([]byte(strings.Repeat("é世", 40)))
		if got, _ := o.text(); !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) {
			t.Errorf("%d bytes: %q", most, got)
		}
	}
}
