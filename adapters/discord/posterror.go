package discord

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/bwmarrin/discordgo"

	"mimikit/adapters"
)

// Error codes of Discord that discordgo has no names for.
const (
	codeCloudflare     = 40333
	codeAcknowledged   = 40060
	codeNoMutualGuilds = 50278
	codeAutoModerated  = 200000
)

// explain adds to an error what an operator can do about it.
func explain(err error) error {
	mend := ""
	var e *apiError
	switch {
	case !errors.As(err, &e):
	case e.Status == http.StatusUnauthorized:
		mend = "the bot token is wrong or was reset: copy it anew from the Bot page of the application"
	case e.Code == discordgo.ErrCodeMissingAccess:
		mend = "the bot cannot see this channel: give its role \"View Channel\" there"
	case e.Code == discordgo.ErrCodeMissingPermissions:
		mend = "the bot lacks a permission here: invite it again with the link of `mimikit discord invite`, or give its role \"Send Messages\", \"Send Messages in Threads\" and \"Create Public Threads\""
	case e.Code == discordgo.ErrCodeCannotSendMessagesToThisUser, e.Code == codeNoMutualGuilds:
		mend = "the person takes no direct messages from the bot, or shares no server with it"
	}
	if mend == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, mend)
}

// postError sorts why a message could not be posted by what can be done about it.
func postError(err error) error {
	if err == nil {
		return nil
	}
	post := &adapters.PostError{Kind: adapters.UnknownPost, Err: explain(err)}
	var busy *busyError
	var e *apiError
	switch {
	case errors.As(err, &busy):
		post.Kind = adapters.RetryPost
		if busy.wait != Never {
			post.RetryAfter = busy.wait
		}
	case errors.As(err, &e):
		post.Kind, post.RetryAfter = kindOf(e), e.RetryAfter
	case neverSent(err):
		post.Kind = adapters.RetryPost
	}
	return post
}

func kindOf(e *apiError) adapters.PostErrorKind {
	switch {
	case e.Status == http.StatusTooManyRequests, e.Code == codeCloudflare:
		return adapters.RetryPost
	case e.Status >= 500, e.Status == http.StatusRequestTimeout:
		return adapters.UnknownPost
	case e.Status == http.StatusUnauthorized:
		return adapters.Misconfig
	}
	switch e.Code {
	case discordgo.ErrCodeUnknownChannel, discordgo.ErrCodeUnknownGuild, discordgo.ErrCodeMissingAccess,
		discordgo.ErrCodeCannotSendMessagesToThisUser, codeNoMutualGuilds, discordgo.ErrCodeCannotSendMessagesInVoiceChannel,
		discordgo.ErrCodeThreadIsLocked, discordgo.ErrCodePerformedOperationOnArchivedThread:
		return adapters.PlaceGone
	case discordgo.ErrCodeMissingPermissions:
		return adapters.Misconfig
	case discordgo.ErrCodeThisActionCannotBePerformedDueToSlowmodeRateLimit, discordgo.ErrCodeChannelHasHitWriteRateLimit,
		discordgo.ErrCodeTheWriteActionYouArePerformingOnTheServerHasHitTheWriteRateLimit,
		discordgo.ErrCodeOpeningDirectMessagesTooFast, discordgo.ErrCodeMaximumNumberOfActiveThreadsReached:
		return adapters.RetryPost
	}
	switch e.Status {
	case http.StatusNotFound:
		return adapters.PlaceGone
	case http.StatusForbidden:
		if e.Code == codeAutoModerated {
			return adapters.BadContent
		}
		return adapters.Misconfig
	}
	return adapters.BadContent // a 4xx: the same request will always be refused
}

// errNotSent is matched by the errors of requests that were given up before they
// were made.
var errNotSent = errors.New("not sent")

// neverSent reports whether an error came before a byte was sent.
func neverSent(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.Is(err, errNotSent) || errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns)
}
