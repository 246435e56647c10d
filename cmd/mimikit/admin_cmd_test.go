package main

import (
	"strings"
	"testing"
)

// Whoever asks what somebody did by their id still says how much they want to see.
func TestAuditWords(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"":                               "audit 7",
		"cancel refused":                 "audit cancel refused 7",
		"cancel 3":                       "audit cancel 3",
		"80351110224678912":              "audit 80351110224678912 7",
		"by 80351110224678912":           "audit by 80351110224678912 7",
		"BY 1000":                        "audit BY 1000 7",
		"by 80351110224678912 refused 3": "audit by 80351110224678912 refused 3",
	} {
		c := auditCmd{Words: strings.Fields(words), Limit: 7}
		if got := strings.Join(c.order(), " "); got != want {
			t.Errorf("%q gives %q, want %q", words, got, want)
		}
	}
	c := auditCmd{By: "1000", Since: "7d", Refused: true, Limit: 7}
	if got, want := strings.Join(c.order(), " "), "audit by 1000 since 7d refused 7"; got != want {
		t.Errorf("flags give %q, want %q", got, want)
	}
}
