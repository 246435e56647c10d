package llm_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"mimikit/core/llm"
)

// A secret that is spelled otherwise where it stands is found there, too: what logs are
// written in, and addresses, have their own spelling of quotes, signs and letters.
func TestScrubsHoweverSpelled(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{`plain-secret`, `pa"ss&word`, `p<a>"ss\word`, `pä ss/word+1`, "two\nlines&\t\"", `u0026\u0026"&"x`} {
		var b bytes.Buffer
		for _, h := range []slog.Handler{slog.NewJSONHandler(&b, nil), slog.NewTextHandler(&b, nil)} {
			log := slog.New(h)
			log.Info("it says " + secret)
			log.Info("failed", "error", errors.New("with "+secret))
		}

		b.WriteString(url.Values{"key": {secret}}.Encode() + " " + url.PathEscape(secret))
		got := llm.NewScrubber(secret).Text(b.String())
		if n := strings.Count(got, "[secret]"); n != 6 || strings.Contains(got, "word") || strings.Contains(got, "lines") {
			t.Errorf("of %q %d are found: %s", secret, n, got)
		}
	}
}
