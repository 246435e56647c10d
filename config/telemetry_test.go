package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTelemetry(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("Basic abc=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const endpoint = "MIMIKIT_TELEMETRY_OTLP_ENDPOINT=http://collector:4318"
	for _, c := range []struct {
		env    []string
		header string // what is sent as Authorization
		wrong  string
	}{
		{env: nil},
		{env: []string{endpoint}},
		{env: []string{endpoint, "MIMIKIT_TELEMETRY_OTLP_KEY=abc"}, header: "Bearer abc"},
		{env: []string{endpoint, "MIMIKIT_TELEMETRY_OTLP_KEY_FILE=" + file}, header: "Basic abc="},
		{env: []string{endpoint, "MIMIKIT_TELEMETRY_OTLP_HEADERS=Authorization=x,X-Team=y"}, header: "x"},
		{env: []string{"MIMIKIT_TELEMETRY_OTLP_KEY=abc"}, wrong: "no traces are sent"},
		{env: []string{"MIMIKIT_TELEMETRY_OTLP_HEADERS=X-Team=y"}, wrong: "no traces are sent"},
		{env: []string{"MIMIKIT_TELEMETRY_OTLP_ENDPOINT=collector:4318"}, wrong: "an http or https URL"},
		{env: []string{"MIMIKIT_TELEMETRY_OTLP_ENDPOINT=http://me:secret@collector"}, wrong: "without credentials"},
		{env: []string{endpoint, "MIMIKIT_TELEMETRY_SAMPLE=101"}, wrong: "0 to 100"},
		{env: []string{endpoint, "MIMIKIT_TELEMETRY_QUEUE=0"}, wrong: "1 to 65536"},
		{env: []string{endpoint, "MIMIKIT_TELEMETRY_SERVICE=a b"}, wrong: "letters, digits"},
		{env: []string{endpoint, "MIMIKIT_TELEMETRY_OTLP_TIMEOUT=5m"}, wrong: "1s to 1m"},
	} {
		got, err := Load("", append(c.env, "HOME="+t.TempDir()))
		switch {
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%q: %v, want %q", c.env, err, c.wrong)
		case c.wrong == "" && err != nil:
			t.Errorf("%q: %v", c.env, err)
		case c.wrong == "" && got.Telemetry.OTLP.Sent()["Authorization"] != c.header:
			t.Errorf("%q: sent is %q, want %q", c.env, got.Telemetry.OTLP.Sent(), c.header)
		}
	}
}
