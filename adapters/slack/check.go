package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A Finding is one thing that was checked.
type Finding struct {
	What string // in a few words
	OK   bool
	Say  string // what was found
	Mend string // what to do about it, when it is not OK
}

// Check tests the tokens, the scopes and, in Socket Mode, that a socket opens,
// for `doctor`. It stops at what makes the rest meaningless.
func (b *Bot) Check(ctx context.Context) []Finding {
	me, err := b.api.identity(ctx)
	if err != nil {
		return []Finding{{What: "Slack bot token", Say: err.Error(), Mend: mend(err)}}
	}
	list := []Finding{{What: "Slack bot token", OK: true, Say: fmt.Sprintf("bot %s in %s (%s)", me.UserID, me.Team, me.TeamID)}}
	list = append(list, scopesFound(me.Scopes, b.o.Agent == AgentOff))
	if b.o.Mode == SocketMode {
		list = append(list, b.socketFound(ctx))
	}
	return list
}

func scopesFound(have []string, noAgent bool) Finding {
	f := Finding{What: "Slack scopes", OK: true, Say: fmt.Sprintf("%d granted", len(have))}
	if len(have) == 0 {
		f.Say = "Slack did not list them"
		return f
	}
	var missing []string
	for _, s := range (ManifestOptions{NoAgent: noAgent}).scopes() {
		if !slices.Contains(have, s) {
			missing = append(missing, s)
		}
	}
	if len(missing) > 0 {
		f.OK, f.Say = false, "missing: "+strings.Join(missing, ", ")
		f.Mend = "paste the output of `mimikit slack manifest` into the app's manifest and reinstall the app"
	}
	return f
}

// socketFound opens a socket and closes it again.
func (b *Bot) socketFound(ctx context.Context) Finding {
	f := Finding{What: "Slack socket"}
	s, err := b.Listener.dial(ctx)
	if err == nil {
		go s.listen(s.control)
		defer func() { s.close(); <-s.done }()
		select {
		case <-s.hello:
		case <-s.leaving:
			err = s.fault()
		case <-s.done:
			err = s.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		f.Say, f.Mend = err.Error(), mend(err)
		return f
	}
	f.OK, f.Say = true, "opened"
	return f
}

// mend says what an operator can do about an error.
func mend(err error) string {
	switch code(err) {
	case "invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "app_uninstalled":
		return "reinstall the app in the workspace and set the new token"
	case "missing_scope":
		return "paste the output of `mimikit slack manifest` into the app's manifest and reinstall the app"
	case "not_allowed_token_type":
		return "set the bot token (xoxb-…) and the app-level token (xapp-…) where each belongs"
	case "":
		return "see whether this machine reaches slack.com, and which proxy it needs"
	}
	return "see https://docs.slack.dev for " + code(err)
}
