package llm

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
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
		// As it stands within a text: in JSON, which may or may not spell out what HTML
		// would read, within quotes as Go has them, and in an address.
		if b, err := json.Marshal(s); err == nil {
			kept = appendSecret(kept, string(b[1:len(b)-1]))
			kept = appendSecret(kept, plainHTML.Replace(string(b[1:len(b)-1])))
		}
		q := strconv.Quote(s)
		kept = appendSecret(kept, q[1:len(q)-1])
		kept = appendSecret(appendSecret(kept, url.QueryEscape(s)), url.PathEscape(s))
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

// plainHTML undoes what [json.Marshal] does for HTML, which slog does not.
var plainHTML = strings.NewReplacer(`\\`, `\\`, `\u0026`, "&", `\u003c`, "<", `\u003e`, ">")

// A shape is a kind of secret. The hints are words of which one must be in a
// text before the pattern is worth its time: prompts are long, and nearly all of
// them hold no secret.
type shape struct {
	hints   []string
	pattern *regexp.Regexp // its first group, which tells what was there, is kept
}

var shapes = []shape{
	// A private key up to its end, or to the end of what can belong to it.
	{[]string{"PRIVATE KEY-----"}, regexp.MustCompile(`(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----)(?:[A-Za-z0-9+/=\s\\:,-]*?-----END [A-Z0-9 ]*PRIVATE KEY-----|[A-Za-z0-9+/=\s\\:,-]*)`)},
	// OpenAI and those that copied it; Stripe.
	{[]string{"sk-", "k_live_"}, regexp.MustCompile(`\b(sk-|rk_live_|sk_live_)[A-Za-z0-9_-]{16,}`)},
	{[]string{"xox", "xapp-", "xwfp-"}, regexp.MustCompile(`\b(xox[a-z]-|xapp-|xwfp-)[A-Za-z0-9-]{8,}`)}, // Slack
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, regexp.MustCompile(`\b(gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,}`)},
	{[]string{"glpat-"}, regexp.MustCompile(`\b(glpat-)[A-Za-z0-9_-]{16,}`)},
	{[]string{"AKIA", "ASIA"}, regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{[]string{"AIza"}, regexp.MustCompile(`\b(AIza)[A-Za-z0-9_-]{30,}`)},                                        // Google
	{[]string{".eyJ"}, regexp.MustCompile(`\b(eyJ)[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`)}, // JSON web tokens
	// Whatever an HTTP header carried.
	{[]string{"earer ", "EARER "}, regexp.MustCompile(`(?i)\b(bearer )[A-Za-z0-9._~+/=-]{8,}`)},
}

// Text gives s with "[secret]" in place of every secret found.
func (c *Scrubber) Text(s string) string {
	if c.known != nil {
		s = c.known.Replace(s)
	}
	for _, shape := range shapes {
		if contains(s, shape.hints) {
			s = shape.pattern.ReplaceAllString(s, "${1}[secret]")
		}
	}
	return scrubDiscord(s)
}

// discordTail is the end of a Discord token: its time and its signature.
var discordTail = regexp.MustCompile(`\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}`)

// scrubDiscord takes out Discord tokens. They begin with nothing that is known
// of them but its length, so they are found by their end.
func scrubDiscord(s string) string {
	var b strings.Builder
	done := 0
	for _, m := range discordTail.FindAllStringIndex(s, -1) {
		start := m[0]
		for start > done && tokenByte(s[start-1]) {
			start--
		}
		if n := m[0] - start; n < 17 || n > 40 { // a user's id in base64
			continue
		}
		b.WriteString(s[done:start])
		b.WriteString("[secret]")
		done = m[1]
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

func tokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
