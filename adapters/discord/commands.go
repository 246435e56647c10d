package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/bwmarrin/discordgo"

	"mimikit/core/chat"
)

// Commands are what people can tell the bot to do without a model: with a slash
// command, in a message, or with a button. It is called from several goroutines at
// once. Of an error the person is told what its method Refused says, if it has one;
// any other is logged.
type Commands interface {
	// List gives the commands to register, in the order in which they are shown.
	List() []Command
	// Parse reports whether a message is a command, and gives its words. direct says
	// that the message is meant for the bot beyond doubt: it mentions it, or is a
	// direct message.
	Parse(text string, direct bool) (words []string, ok bool)
	// Run does what the words say, for a caller.
	Run(ctx context.Context, c Caller, words []string) (Answer, error)
	// Press does what a button of ours stands for, for whoever pressed it.
	Press(ctx context.Context, c Caller, value string) (Answer, error)
	// Complete gives what may stand for an argument of which a part is typed. It has
	// about two seconds.
	Complete(ctx context.Context, c Caller, command, arg, typed string) ([]Choice, error)
}

// A Command is one of the set.
type Command struct {
	Name  string // lower case, at most 32 characters
	Short string // one sentence, at most 100 characters
	// Operator hides it from those who may not manage the server; whether they may
	// use it is Run's to decide.
	Operator bool
	Args     []Arg
}

// An Arg is one thing that may follow a command's name.
type Arg struct {
	Name     string
	Short    string
	Words    []string // what is allowed, where that is a list
	Complete bool     // ask Complete while it is typed
	Optional bool
}

// A Caller is who wants something, and where. Its author is verified.
type Caller struct {
	Author       chat.Author
	Conversation chat.Conversation
	Message      string // the message that the button stands below, or that has the command; "" for a slash command
	ID           string // of the interaction or the message: the same wish never has another
	At           time.Time
}

// An Answer is what a command comes to. All of it may be empty.
type Answer struct {
	Text    string // Markdown; shown to the caller alone, but for a command in a message
	Buttons []chat.Button
	// Note is put in the place of the buttons below the message, for all to see: who
	// has answered what.
	Note string
}

// A Choice is one that autocomplete offers.
type Choice struct {
	Label string
	Value string
}

// syncedFor is how long commands are taken for registered.
const syncedFor = 60 * 24 * time.Hour

const (
	slashName    = "mimikit"
	operatorName = "mimikit-admin"
	askName      = "Ask Mimikit about this"
)

// registered are the commands as Discord takes them.
func registered(all []Command) []*discordgo.ApplicationCommand {
	everywhere := &[]discordgo.InteractionContextType{discordgo.InteractionContextGuild, discordgo.InteractionContextBotDM}
	installs := &[]discordgo.ApplicationIntegrationType{discordgo.ApplicationIntegrationGuildInstall}
	manage := int64(discordgo.PermissionManageGuild)
	user := &discordgo.ApplicationCommand{
		Type: discordgo.ChatApplicationCommand, Name: slashName, Description: "Tasks, status and help",
		Contexts: everywhere, IntegrationTypes: installs,
	}
	operator := &discordgo.ApplicationCommand{
		Type: discordgo.ChatApplicationCommand, Name: operatorName, Description: "For those who run the bot",
		Contexts: everywhere, IntegrationTypes: installs, DefaultMemberPermissions: &manage,
	}
	for _, c := range all {
		to := user
		if c.Operator {
			to = operator
		}
		if len(to.Options) < 25 {
			to.Options = append(to.Options, subcommand(c))
		}
	}
	out := []*discordgo.ApplicationCommand{}
	for _, c := range []*discordgo.ApplicationCommand{user, operator} {
		if len(c.Options) > 0 {
			out = append(out, c)
		}
	}
	return append(out, &discordgo.ApplicationCommand{
		Type: discordgo.MessageApplicationCommand, Name: askName, Contexts: everywhere, IntegrationTypes: installs,
		Options: []*discordgo.ApplicationCommandOption{},
	})
}

func subcommand(c Command) *discordgo.ApplicationCommandOption {
	out := &discordgo.ApplicationCommandOption{
		Type: discordgo.ApplicationCommandOptionSubCommand, Name: c.Name, Description: described(c.Short, c.Name),
	}
	optional := false
	for _, a := range c.Args {
		if len(out.Options) == 25 {
			break
		}
		optional = optional || a.Optional // Discord wants the required ones first
		o := &discordgo.ApplicationCommandOption{
			Type: discordgo.ApplicationCommandOptionString, Name: a.Name, Description: described(a.Short, a.Name), Required: !optional,
		}
		switch {
		case a.Complete || len(a.Words) > 25:
			o.Autocomplete = true
		default:
			for _, w := range a.Words {
				o.Choices = append(o.Choices, &discordgo.ApplicationCommandOptionChoice{Name: w, Value: w})
			}
		}
		out.Options = append(out.Options, o)
	}
	return out
}

func described(short, name string) string {
	if short == "" {
		return name
	}
	if r := []rune(short); len(r) > 100 {
		return string(r[:99]) + "…"
	}
	return short
}

// syncCommands registers the commands, when they are others than last time. New
// registrations are counted by Discord, and too many are refused for a day.
func (d *Bot) syncCommands(ctx context.Context) error {
	if d.o.Commands == nil {
		return nil
	}
	_, app, err := d.who(ctx)
	if err != nil {
		return err
	}
	all := registered(d.o.Commands.List())
	data, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("encode the commands: %w", err)
	}
	scope := d.o.DevGuild
	sum := sha256.Sum256(data)
	fingerprint := hex.EncodeToString(sum[:16])
	key := "discord/commands/" + app + "/" + scope
	if last, err := d.o.Notes.Note(ctx, key); err != nil {
		return fmt.Errorf("read which commands are registered: %w", err)
	} else if last == fingerprint {
		return nil
	}
	path := "/applications/" + app + "/commands"
	if scope != "" {
		path = "/applications/" + app + "/guilds/" + scope + "/commands"
	}
	if err := d.api.do(ctx, request{method: "PUT", path: path, body: json.RawMessage(data), route: "PUT " + path}, nil); err != nil {
		return fmt.Errorf("register the commands: %w", explain(err))
	}
	d.o.Logger.Info("discord_commands_registered", "commands", len(all), "guild", scope)
	if err := d.o.Notes.SetNote(ctx, key, fingerprint, syncedFor); err != nil {
		return fmt.Errorf("note which commands are registered: %w", err)
	}
	return nil
}

// keepSynced registers the commands, and tries again while that fails: after as
// long as Discord asks for, or else ever less often.
func (d *Bot) keepSynced(ctx context.Context) {
	for n := 0; ; n++ {
		short, cancel := context.WithTimeout(ctx, time.Minute)
		err := d.syncCommands(short)
		cancel()
		if err == nil || ctx.Err() != nil {
			return
		}
		wait := time.Minute << min(n, 6)
		var e *apiError
		var busy *busyError
		switch {
		case errors.As(err, &e):
			if wait = max(wait, e.RetryAfter); e.Status == 400 {
				d.o.Logger.Error("discord_commands_refused", "error", err)
				return // they would be refused again
			}
		case errors.As(err, &busy):
			wait = max(wait, busy.wait)
		}
		d.o.Logger.Warn("discord_commands_not_registered", "error", err, "retry_in", wait)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}
