package discord

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"mimikit/adapters"
)

const (
	ackTime = 2500 * time.Millisecond // of Discord's 3 seconds
	actTime = 14 * time.Minute        // of a token's 15
)

// beside takes an interaction up. Where there is no room, its person is told so.
func (d *Bot) beside(i *interaction, f func(ctx context.Context, i *interaction)) Outcome {
	if d.jobs.do(laneAct, actTime, func(ctx context.Context) { f(ctx, i) }) {
		return Handled
	}
	d.o.Logger.Warn("discord_interaction_dropped", "interaction", string(i.ID))
	d.jobs.do(laneBusy, ackTime, func(ctx context.Context) {
		if err := d.callback(ctx, i, busyAnswer(i)); err != nil {
			d.o.Logger.Info("discord_interaction_over", "interaction", string(i.ID), "error", err)
		}
	})
	return Dropped
}

func busyAnswer(i *interaction) any {
	if discordgo.InteractionType(i.Type) == discordgo.InteractionApplicationCommandAutocomplete {
		return offered(nil)
	}
	return discordgo.InteractionResponse{
		Type: discordgo.InteractionResponseChannelMessageWithSource,
		Data: &discordgo.InteractionResponseData{Content: "⚠️ I have too much to do just now. Please try again in a moment.", Flags: discordgo.MessageFlagsEphemeral},
	}
}

// callback gives the first response to an interaction.
func (d *Bot) callback(ctx context.Context, i *interaction, response any) error {
	return d.api.do(ctx, request{method: "POST", path: "/interactions/" + string(i.ID) + "/" + i.Token + "/callback", body: response}, nil)
}

// acknowledge answers an interaction at first. It reports false when it is too
// late for that, or somebody else has: then nothing more is to be done.
func (d *Bot) acknowledge(ctx context.Context, i *interaction, r discordgo.InteractionResponse) bool {
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	first, stop := context.WithTimeout(ctx, ackTime/2)
	err := d.callback(first, i, r)
	stop()
	if unsure := err; outcomeUnknown(unsure) {
		// Its answer may have been lost. When it is acknowledged by now it was by us,
		// unless another node takes it up as well.
		if err = d.callback(ctx, i, r); codeOf(err) == codeAcknowledged {
			var mine bool
			if mine, err = d.o.Claims.Claim(ctx, "discord/act/"+string(i.ID), time.Hour); err == nil && !mine {
				err = unsure
			}
		}
	}
	if err == nil {
		return true
	}
	d.told("INTERACTION_CREATE", Late)
	switch codeOf(err) {
	case codeAcknowledged, discordgo.ErrCodeUnknownInteraction:
		d.o.Logger.Info("discord_interaction_over", "interaction", string(i.ID), "error", err)
	default:
		d.o.Logger.Warn("discord_interaction_not_acknowledged", "interaction", string(i.ID), "error", err)
	}
	return false
}

// outcomeUnknown reports whether a request may have been carried out though it
// failed.
func outcomeUnknown(err error) bool {
	var p *adapters.PostError
	return err != nil && errors.As(postError(err), &p) && p.Kind == adapters.UnknownPost
}

func deferred(kind discordgo.InteractionResponseType) discordgo.InteractionResponse {
	r := discordgo.InteractionResponse{Type: kind}
	if kind == discordgo.InteractionResponseDeferredChannelMessageWithSource {
		r.Data = &discordgo.InteractionResponseData{Flags: discordgo.MessageFlagsEphemeral}
	}
	return r
}

// tell shows an answer to who asked. The first part goes into the place that
// "thinking…" holds, if it is held.
func (d *Bot) tell(ctx context.Context, i *interaction, a Answer, held bool) {
	rows, shown := components(a.Buttons)
	if !shown {
		a.Text += numbered(a.Buttons)
	}
	if strings.TrimSpace(a.Text) == "" && len(rows) == 0 {
		a.Text = "Done."
	}
	parts := atMost(renderParts(a.Text), mostTold)
	for n, part := range parts {
		m := outMessage{Content: part, Flags: discordgo.MessageFlagsEphemeral}
		if n == len(parts)-1 && len(rows) > 0 {
			m.Components = &rows
		}
		if n == 0 && held {
			d.answer(ctx, i, "PATCH", "/messages/@original", m)
			continue
		}
		d.answer(ctx, i, "POST", "", m)
	}
}

// answer writes to an interaction's webhook, once: only what Discord certainly did
// not take, since it came too fast, is sent again.
func (d *Bot) answer(ctx context.Context, i *interaction, method, below string, m outMessage) {
	_, app, err := d.who(ctx)
	m.Allowed = noMentions()
	m.Flags |= discordgo.MessageFlagsSuppressEmbeds
	if method == "PATCH" {
		m.Flags = 0 // they are as they were when it was made
	}
	for n := 0; err == nil && n < 4; n++ {
		short, cancel := context.WithTimeout(ctx, 15*time.Second)
		err = d.api.do(short, request{method: method, path: "/webhooks/" + app + "/" + i.Token + below, body: m}, nil)
		cancel()
		var e *apiError
		switch {
		case err == nil:
			return
		case errors.As(err, &e) && e.Status == http.StatusTooManyRequests && e.RetryAfter <= time.Minute:
			err = pause(ctx, e.RetryAfter)
		}
	}
	d.o.Logger.Warn("discord_interaction_not_answered", "interaction", string(i.ID), "error", err)
}
