package slack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/slack-go/slack"

	"mimikit/adapters"
)

var (
	errPaced   = errors.New("the rate budget has no room now")
	errDropped = errors.New("dropped, since the rate budget is kept for what matters more")
)

// What Slack's error codes mean for something that was to be shown. A code that
// is not listed leaves the outcome open, and so do those with which Slack itself
// says that a part may have succeeded (internal_error, fatal_error).
var meanings = map[string]adapters.PostErrorKind{
	"ratelimited":                           adapters.RetryPost,
	"rate_limited":                          adapters.RetryPost,
	"message_limit_exceeded":                adapters.RetryPost,
	"request_timeout":                       adapters.RetryPost, // Slack could not read the whole request
	"team_added_to_org":                     adapters.RetryPost, // the workspace is being moved
	"posting_to_channel_denied_temporarily": adapters.RetryPost,

	"msg_too_long":                   adapters.BadContent,
	"msg_blocks_too_long":            adapters.BadContent,
	"no_text":                        adapters.BadContent,
	"invalid_blocks":                 adapters.BadContent,
	"invalid_blocks_format":          adapters.BadContent,
	"invalid_metadata_format":        adapters.BadContent,
	"invalid_metadata_schema":        adapters.BadContent,
	"metadata_too_large":             adapters.BadContent,
	"too_many_attachments":           adapters.BadContent,
	"invalid_arguments":              adapters.BadContent,
	"invalid_arg_name":               adapters.BadContent,
	"invalid_array_arg":              adapters.BadContent,
	"invalid_charset":                adapters.BadContent,
	"invalid_form_data":              adapters.BadContent,
	"markdown_text_conflict":         adapters.BadContent,
	"edit_window_closed":             adapters.BadContent,
	"message_not_in_streaming_state": adapters.BadContent,
	"message_not_owned_by_app":       adapters.BadContent,
	"streaming_state_conflict":       adapters.BadContent,
	"cant_delete_message":            adapters.BadContent,
	"cant_update_message":            adapters.BadContent,
	"file_update_failed":             adapters.BadContent,
	"malware_detected":               adapters.BadContent,
	"blocked_file_type":              adapters.BadContent,

	"channel_not_found":                         adapters.PlaceGone,
	"not_in_channel":                            adapters.PlaceGone,
	"is_archived":                               adapters.PlaceGone,
	"is_inactive":                               adapters.PlaceGone,
	"user_not_found":                            adapters.PlaceGone,
	"user_disabled":                             adapters.PlaceGone,
	"user_not_in_channel":                       adapters.PlaceGone,
	"cannot_dm_bot":                             adapters.PlaceGone,
	"messages_tab_disabled":                     adapters.PlaceGone,
	"thread_locked":                             adapters.PlaceGone,
	"thread_not_found":                          adapters.PlaceGone,
	"message_not_found":                         adapters.PlaceGone,
	"cannot_reply_to_message":                   adapters.PlaceGone,
	"restricted_action":                         adapters.PlaceGone,
	"restricted_action_read_only_channel":       adapters.PlaceGone,
	"restricted_action_thread_only_channel":     adapters.PlaceGone,
	"restricted_action_thread_locked":           adapters.PlaceGone,
	"restricted_action_non_threadable_channel":  adapters.PlaceGone,
	"slack_connect_canvas_sharing_blocked":      adapters.PlaceGone,
	"external_channel_migrating":                adapters.PlaceGone,
	"mpim_or_im_not_supported":                  adapters.PlaceGone,
	"slack_connect_file_upload_sharing_blocked": adapters.PlaceGone,
	"slack_connect_blocked_file_type":           adapters.PlaceGone,
	"method_not_supported_for_channel_type":     adapters.PlaceGone,

	"not_authed":                adapters.Misconfig,
	"invalid_auth":              adapters.Misconfig,
	"account_inactive":          adapters.Misconfig,
	"token_revoked":             adapters.Misconfig,
	"token_expired":             adapters.Misconfig,
	"app_uninstalled":           adapters.Misconfig,
	"no_permission":             adapters.Misconfig,
	"missing_scope":             adapters.Misconfig,
	"not_allowed_token_type":    adapters.Misconfig,
	"access_denied":             adapters.Misconfig,
	"accesslimited":             adapters.Misconfig,
	"ekm_access_denied":         adapters.Misconfig,
	"org_login_required":        adapters.Misconfig,
	"two_factor_setup_required": adapters.Misconfig,
	"team_access_not_granted":   adapters.Misconfig,
	"enterprise_is_restricted":  adapters.Misconfig,
	"not_authorized":            adapters.Misconfig,
	"unknown_method":            adapters.Misconfig,
	"method_deprecated":         adapters.Misconfig,
	"deprecated_endpoint":       adapters.Misconfig,
	"storage_limit_reached":     adapters.Misconfig,
	"file_uploads_disabled":     adapters.Misconfig,
}

// code gives Slack's error code; "" where Slack answered none.
func code(err error) string {
	var e slack.SlackErrorResponse
	if errors.As(err, &e) {
		return e.Err
	}
	var limited *slack.RateLimitedError
	if errors.As(err, &limited) {
		return "ratelimited"
	}
	return ""
}

// sorted makes of a failed call what the outbox can act upon.
func sorted(err error) error {
	if err == nil {
		return nil
	}
	var already *adapters.PostError
	if errors.As(err, &already) {
		return err
	}
	e := &adapters.PostError{Kind: adapters.UnknownPost, Err: explained(err)}
	var limited *slack.RateLimitedError
	var status slack.StatusCodeError
	switch {
	case errors.As(err, &limited):
		e.Kind, e.RetryAfter = adapters.RetryPost, limited.RetryAfter
	case errors.Is(err, errPaced), errors.Is(err, errDropped):
		e.Kind = adapters.RetryPost
	case errors.As(err, &status):
		e.Kind = kindOfStatus(status.Code)
	case meanings[code(err)] != 0:
		e.Kind = meanings[code(err)]
	case neverSent(err):
		e.Kind = adapters.RetryPost
	}
	return e
}

func kindOfStatus(status int) adapters.PostErrorKind {
	switch {
	case status == http.StatusTooManyRequests:
		return adapters.RetryPost
	case status == http.StatusRequestEntityTooLarge:
		return adapters.BadContent
	case status >= 500: // a gateway says nothing of what is behind it
		return adapters.UnknownPost
	}
	return adapters.RetryPost // a proxy or a wrong address: Slack answers 200 whatever it thinks
}

// neverSent tells the failures before a request can have left: no name, no
// connection.
func neverSent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}

// explained adds to the codes that an operator must act on what to do.
func explained(err error) error {
	var e slack.SlackErrorResponse
	if !errors.As(err, &e) {
		return err
	}
	switch e.Err {
	case "missing_scope":
		return fmt.Errorf("%w: the app lacks the scope %s; add it under \"OAuth & Permissions\" (or paste the manifest again) and reinstall the app", err, e.Needed)
	case "not_in_channel", "channel_not_found":
		return fmt.Errorf("%w: the bot is not in this conversation; invite it", err)
	case "invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "app_uninstalled":
		return fmt.Errorf("%w: the token is not valid (any more); reinstall the app and take over the new token", err)
	case "not_allowed_token_type":
		return fmt.Errorf("%w: this is a token of another kind; bot tokens begin with xoxb-, app-level tokens with xapp-", err)
	case "messages_tab_disabled":
		return fmt.Errorf("%w: allow messages to the app under \"App Home\"", err)
	}
	return err
}

// retryAfter is how long Slack asks to be left alone; 0 when it does not.
func retryAfter(err error) time.Duration {
	var limited *slack.RateLimitedError
	if errors.As(err, &limited) {
		return max(limited.RetryAfter, time.Second)
	}
	var status slack.StatusCodeError
	if errors.As(err, &status) && status.Code == http.StatusTooManyRequests {
		return 30 * time.Second
	}
	if c := code(err); c == "ratelimited" || c == "rate_limited" {
		return 30 * time.Second
	}
	return 0
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
