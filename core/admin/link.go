package admin

import (
	"net/url"
	"strings"
)

// A Spot is where a message stands, as a link to it tells.
type Spot struct {
	Platform  string
	Workspace string // "" where the link does not name it, or there is none
	Place     string // as the link has it: on Discord a thread is a place of its own
	Thread    string // the message that the thread begins with, where the link says so
	Message   string // the platform's id
}

// readLink takes a link to a message apart: one of Slack's ("Copy link"), or of
// Discord's ("Copy Message Link"), as it is pasted or as the platform marks it up.
func readLink(word string) (Spot, bool) {
	if inside, ok := strings.CutPrefix(word, "<"); ok {
		word, _, _ = strings.Cut(strings.TrimSuffix(inside, ">"), "|")
	}
	word = strings.ReplaceAll(word, "&amp;", "&") // so Slack writes what is within a message
	u, err := url.Parse(word)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return Spot{}, false
	}
	host := strings.ToLower(u.Hostname())
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case within(host, "slack.com"):
		return slackLink(parts, u.Query())
	case within(host, "discord.com"), within(host, "discordapp.com"):
		if len(parts) != 4 || parts[0] != "channels" || !digits(parts[2]) || !digits(parts[3]) {
			return Spot{}, false
		}
		s := Spot{Platform: "discord", Workspace: parts[1], Place: parts[2], Message: parts[3]}
		if s.Workspace == "@me" {
			s.Workspace = ""
		} else if !digits(s.Workspace) {
			return Spot{}, false
		}
		return s, true
	}
	return Spot{}, false
}

// slackLink reads /archives/C024/p1763692800000100?thread_ts=1763692800.000100&cid=C024
// and what the client has in its address bar, /client/T024/C024/p1763692800000100.
func slackLink(parts []string, query url.Values) (Spot, bool) {
	s := Spot{Platform: "slack"}
	switch {
	case len(parts) == 3 && parts[0] == "archives":
		s.Place = parts[1]
	case len(parts) == 4 && parts[0] == "client":
		s.Workspace, s.Place = parts[1], parts[2]
	default:
		return Spot{}, false
	}
	id, ok := strings.CutPrefix(parts[len(parts)-1], "p")
	if !ok || !digits(id) || len(id) < 15 || len(id) > 18 || !plainID(s.Place) || s.Workspace != "" && !plainID(s.Workspace) {
		return Spot{}, false
	}
	s.Message = id[:len(id)-6] + "." + id[len(id)-6:]
	if t := query.Get("thread_ts"); t != "" {
		sec, frac, ok := strings.Cut(t, ".")
		if !ok || !digits(sec) || !digits(frac) || len(sec) > 12 || len(frac) != 6 {
			return Spot{}, false
		}
		s.Thread = t
	}
	return s, true
}

func within(host, domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }

func digits(s string) bool { return s != "" && len(s) <= 20 && strings.Trim(s, "0123456789") == "" }

func plainID(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
