package slackfake

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// The tiers of the Web API, in calls in a minute. Slack allows bursts, and says
// that the numbers may be exceeded a little; this is stricter.
const (
	tier2 = 20
	tier3 = 50
	tier4 = 100
)

// tiers are what each method has of them, by its page. Methods with limits of
// their own are not listed.
var tiers = map[string]int{
	"chat.update":                  tier3,
	"chat.delete":                  tier3,
	"chat.postEphemeral":           tier4,
	"chat.startStream":             tier2,
	"chat.appendStream":            tier4,
	"chat.stopStream":              tier2,
	"conversations.history":        tier3,
	"conversations.replies":        tier3,
	"conversations.info":           tier3,
	"users.info":                   tier4,
	"reactions.add":                tier3,
	"reactions.remove":             tier2,
	"files.getUploadURLExternal":   tier4,
	"files.completeUploadExternal": tier4,
	"files.info":                   tier4,
	"views.publish":                tier4,
	"agents.sessions.setStatus":    tier3,
	"assistant.threads.setStatus":  600,
}

// Messages in one place: one a second, and a short burst of more.
const placeBurst = 10

// within counts a call under a key, and refuses it when there were so many in the
// last while. It is called with mu held.
func (s *Server) within(key string, most int, window time.Duration) *Fault {
	now := s.o.Now()
	var recent []time.Time
	for _, at := range s.calls[key] {
		if now.Sub(at) < window {
			recent = append(recent, at)
		}
	}
	s.calls[key] = recent
	if len(recent) >= most {
		wait := window - now.Sub(recent[len(recent)-most])
		s.limited++
		return &Fault{Status: http.StatusTooManyRequests, RetryAfter: int(wait/time.Second) + 1}
	}
	s.calls[key] = append(recent, now)
	return nil
}

// A crowd is how many messages a place may still get at once.
type crowd struct {
	room float64
	at   time.Time
}

// crowded refuses a message in a place that had too many. It is called with mu
// held.
func (s *Server) crowded(c call) *Fault {
	if !s.o.Tiers || c.method != "chat.postMessage" {
		return nil
	}
	now := s.o.Now()
	p := s.crowds[c.get("channel")]
	if p.at.IsZero() {
		p.room = placeBurst
	}
	p.room, p.at = min(placeBurst, p.room+now.Sub(p.at).Seconds()), now
	refuse := p.room < 1
	if !refuse {
		p.room--
	}
	s.crowds[c.get("channel")] = p
	if refuse {
		s.limited++
		return &Fault{Status: http.StatusTooManyRequests, RetryAfter: 1}
	}
	return nil
}

// Limited tells how many calls were refused for their number.
func (s *Server) Limited() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limited
}

// Scopes sets what the token is said to be allowed, in a header of each answer,
// and refuses what needs more. None is all.
func (s *Server) Scopes(list ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scopes = strings.Join(list, ",")
}

// scopes are what methods need. What the bot may read goes by the kind of place.
var scopes = map[string]string{
	"chat.postMessage":             "chat:write",
	"chat.update":                  "chat:write",
	"chat.delete":                  "chat:write",
	"chat.postEphemeral":           "chat:write",
	"chat.startStream":             "chat:write",
	"chat.appendStream":            "chat:write",
	"chat.stopStream":              "chat:write",
	"conversations.history":        ":history",
	"conversations.replies":        ":history",
	"conversations.info":           ":read",
	"users.info":                   "users:read",
	"reactions.add":                "reactions:write",
	"reactions.remove":             "reactions:write",
	"files.getUploadURLExternal":   "files:write",
	"files.completeUploadExternal": "files:write",
	"files.info":                   "files:read",
}

// kinds are how scopes call the kinds of place.
var kinds = map[string]string{"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}

// lacking gives the scope that a call needs and the token has not. It is called
// with mu held.
func (s *Server) lacking(c call) string {
	need := scopes[c.method]
	if need == "" || s.scopes == "" {
		return ""
	}
	if strings.HasPrefix(need, ":") {
		ch := s.channels[c.get("channel")]
		if ch == nil {
			return ""
		}
		need = kinds[ch.Kind] + need
	}
	if slices.Contains(strings.Split(s.scopes, ","), need) {
		return ""
	}
	return need
}
