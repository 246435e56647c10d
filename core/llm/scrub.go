package llm

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// A Scrubber takes secrets out of texts before they are kept: those it was told
// of, and what looks like one of the kinds that people paste most.
type Scrubber struct {
	known *strings.Replacer // nil when none
}

// NewScrubber makes a scrubber for the secrets of this deployment. Those under
// 6 bytes are left out: too short to be one, and cutting every "a" out of a text
// would hide the text.
func NewScrubber(secrets ...string) *Scrubber {
	var kept []string
	for _, s := range secrets {
		kept = appendSecret(kept, s)
		if b, err := json.Marshal(s); err == nil { // as it stands within JSON in a text
			kept = appendSecret(kept, string(b[1:len(b)-1]))
		}
	}
	kept = slices.Compact(kept) // the longest first, so equal ones are neighbours or harmless
	if len(kept) == 0 {
		return &Scrubber{}
	}
	var pairs []string
	for _, s := range kept {
		pairs = append(pairs, s, "[secret]")
	}
	return &Scrubber{known: strings.NewReplacer(pairs...)}
}

// patterns are the shapes of secrets. What is kept of a match is its first
// group, which tells what was there.
var patterns = regexp.MustCompile(strings.Join([]string{
	// A private key up to its end, or to the end of what can belong to it.
	`(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----)(?:[A-Za-z0-9+/=\s\\:,-]*?-----END [A-Z0-9 ]*PRIVATE KEY-----|[A-Za-z0-9+/=\s\\:,-]*)`,
	`\b(sk-|rk_live_|sk_live_)[A-Za-z0-9_-]{16,}`,                       // OpenAI and those that copied it, Stripe
	`\b(xox[a-z]-|xapp-|xwfp-)[A-Za-z0-9-]{8,}`,                         // Slack
	`\b(gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,}`,                       // GitHub
	`\b(glpat-)[A-Za-z0-9_-]{16,}`,                                      // GitLab
	`\b(AKIA|ASIA)[A-Z0-9]{16}\b`,                                       // AWS
	`\b(AIza)[A-Za-z0-9_-]{30,}`,                                        // Google
	`(?i)\b(bearer )[A-Za-z0-9._~+/=-]{8,}`,                             // whatever an HTTP header carried
	`\b()[A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}`,  // Discord
	`\b(eyJ)[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`, // JSON web tokens
}, "|"))

// Text gives s with "[secret]" in place of every secret found.
func (c *Scrubber) Text(s string) string {
	if c.known != nil {
		s = c.known.Replace(s)
	}
	at := patterns.FindAllStringSubmatchIndex(s, -1)
	if at == nil {
		return s
	}
	var b strings.Builder
	end := 0
	for _, m := range at {
		b.WriteString(s[end:m[0]])
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				b.WriteString(s[m[g]:m[g+1]])
			}
		}
		b.WriteString("[secret]")
		end = m[1]
	}
	b.WriteString(s[end:])
	return b.String()
}
