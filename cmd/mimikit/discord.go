package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"mimikit/adapters/discord"
	"mimikit/adapters/discord/gateway"
	"mimikit/core/admin"
	"mimikit/core/chat"
	"mimikit/core/cluster"
	"mimikit/core/task"
	"mimikit/core/trigger"
)

// discord puts the bot's end of Discord together.
func (a *App) discord() (*platform, error) {
	c := a.cfg.Discord
	shared := newDiscordCluster(a.cluster)
	d := discordDoorOf(a)
	o := discord.Options{
		BotToken: c.Token.Reveal(), APIURL: c.APIURL, Mode: discord.Mode(c.Mention), NoContent: !c.Content, Shards: c.Shards, DevGuild: c.Guild,
		Role: func(p discord.Person) chat.Role {
			return a.access.role("discord", p.Admin, append([]string{p.ID}, p.Roles...)...)
		},
		AllowBot:   func(string) bool { return c.Bots },
		Commands:   d,
		CatchUpAge: c.CatchUp, MaxParts: c.MaxParts, StopGrace: min(a.cfg.Channel.StopGrace, 3*time.Second),
		Hooks: discord.Hooks{
			Event: func(kind string, o discord.Outcome) {
				if o == discord.Unknown {
					kind = "other"
				}
				a.metrics.Event("discord", kind, string(o))
			},
			Gateway: func(what string) { a.metrics.SocketChange("discord", what) },
			Call:    a.called("discord"),
			Waited:  func(_ string, _ discord.Priority, wait time.Duration) { a.metrics.RateWait("discord", wait) },
			CatchUp: func(places, messages int, took time.Duration) {
				a.log.Info("discord_caught_up", "places", places, "messages", messages, "took_ms", took.Milliseconds())
			},
		},
		Logger: a.log,
	}
	if a.cluster != nil {
		o.Leases, o.Sessions, o.Places, o.Claims, o.Notes, o.Marks, o.Budget = shared, shared, shared, shared, shared, shared, shared
	}
	bot, err := discord.New(o)
	if err != nil {
		return nil, err
	}
	return &platform{
		name: "discord", listener: bot.Listener, poster: bot.Poster, feedback: bot.Status, fetch: bot.Files.Fetch, edit: bot.Poster.Edit, close: bot.Close,
		// One that holds nothing is as good when others hold all there is.
		ready: func() bool {
			return bot.Listener.Ready() && (bot.Listener.State().Held > 0 || shared.standsBy())
		},
		sockets: func() int { return bot.Listener.State().Connected },
		progress: func(ctx context.Context, c chat.Conversation, p progress) error {
			return bot.Poster.Progress(ctx, c, discord.Progress{ID: p.task, Text: p.text, Buttons: p.buttons, Done: p.done})
		},
		check: func(ctx context.Context) []finding {
			var list []finding
			for _, f := range bot.Check(ctx) {
				list = append(list, finding{What: f.What, OK: f.OK, Say: f.Say, Mend: f.Mend})
			}
			return list
		},
	}, nil
}

// A discordDoor lets people on Discord give commands.
type discordDoor struct{ door }

func discordDoorOf(a *App) discordDoor {
	return discordDoor{door{app: a, name: "discord", prefix: "/mimikit ", operators: "/mimikit-admin "}}
}

// List gives the commands to register: those that can be given there, whoever may.
func (d discordDoor) List() []discord.Command {
	var list []discord.Command
	for _, c := range d.app.set.Commands(chat.RoleAdmin) {
		short := strings.ToUpper(c.Short[:1]) + c.Short[1:]
		cmd := discord.Command{Name: c.Name, Short: short, Operator: c.Rights > chat.RoleUser}
		for _, a := range c.Args {
			cmd.Args = append(cmd.Args, discord.Arg{Name: a.Name, Short: a.Short, Words: a.Words, Complete: a.Task || a.Trigger, Optional: a.Optional})
		}
		list = append(list, cmd)
	}
	return list
}

// Parse tells whether a message is a command.
func (d discordDoor) Parse(text string, direct bool) ([]string, bool) { return d.parse(text, direct) }

// Run carries out a command. A slash command is answered to the caller alone, one
// in a message for all to read.
func (d discordDoor) Run(ctx context.Context, c discord.Caller, words []string) (discord.Answer, error) {
	prefix, private := d.prefix, true
	if c.Message != "" {
		prefix, private = "!", c.Conversation.Direct()
	}
	a, err := d.run(ctx, c.Author, c.Conversation, private, prefix, words)
	return discord.Answer{Text: a.text, Buttons: a.buttons}, err
}

// Press does what a button stands for.
func (d discordDoor) Press(ctx context.Context, c discord.Caller, value string) (discord.Answer, error) {
	a, err := d.press(ctx, c.Author, c.Conversation, value)
	return discord.Answer{Text: a.text, Buttons: a.buttons, Note: admin.Escape(a.note)}, err // a note there is Markdown
}

// completions bounds what autocomplete offers; Discord takes 25.
const completions = 25

// Complete offers the caller's tasks, or triggers, for an id of which a part is typed.
func (d discordDoor) Complete(ctx context.Context, c discord.Caller, command, _, typed string) ([]discord.Choice, error) {
	if d.app.access.refuses(c.Conversation, c.Author.ID) != "" {
		return nil, nil
	}
	requester := c.Author.ID
	if c.Author.Role >= chat.RoleOperator && c.Conversation.Workspace != "" {
		requester = ""
	}
	var list []discord.Choice
	offer := func(id, state, title string, by chat.Author, in chat.Conversation) {
		if by.ID != c.Author.ID && in.Direct() {
			title = "…" // somebody else's direct message
		}
		typed := strings.ToLower(typed)
		if len(list) < completions && (strings.HasPrefix(id, typed) || strings.Contains(strings.ToLower(title), typed)) {
			list = append(list, discord.Choice{Label: state + " · " + title, Value: id})
		}
	}
	if command == "trigger" {
		page, err := d.app.triggers.List(ctx, trigger.Filter{Platform: c.Conversation.Platform, Workspace: c.Conversation.Workspace, Requester: requester}, "", 100)
		for _, t := range page.Triggers {
			offer(t.ID, string(t.Type), t.Title, t.Requester, t.Conversation)
		}
		return list, err
	}
	f := task.Filter{Platform: c.Conversation.Platform, Workspace: c.Conversation.Workspace, Requester: requester}
	if command == "cancel" {
		f.Status = task.Active
	}
	page, err := d.app.queue.List(ctx, f, "", 100)
	for _, t := range page.Tasks {
		if !t.Internal {
			offer(t.ID, string(t.Status), t.Title, t.Requester, t.Conversation)
		}
	}
	return list, err
}

// A discordCluster is what nodes share, as Discord's adapter asks for it.
type discordCluster struct {
	sharedState
	waits atomic.Int64 // since when it waits for a shard, in Unix nanoseconds; 0 while it does not
}

func newDiscordCluster(c *cluster.Cluster) *discordCluster {
	return &discordCluster{sharedState: sharedState{c: c, platform: "discord", timeOf: func(id string) (time.Time, error) {
		at := discord.TimeOf(id)
		if at.IsZero() {
			return at, errors.New("want an id of Discord's")
		}
		return at, nil
	}}}
}

// standsBy reports whether it has asked for a shard, and was not given it at once.
func (s *discordCluster) standsBy() bool {
	since := s.waits.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > time.Second
}

func shardName(s gateway.Shard) string { return "discord-shard-" + s.String() }

// Acquire waits until this node holds a shard.
func (s *discordCluster) Acquire(ctx context.Context, shard gateway.Shard) (discord.Lease, error) {
	s.waits.CompareAndSwap(0, time.Now().UnixNano())
	defer s.waits.Store(0)
	return s.c.Acquire(ctx, shardName(shard), 1)
}

// Load reads how far a shard's session has come.
func (s *discordCluster) Load(ctx context.Context, shard gateway.Shard) (gateway.State, error) {
	var st gateway.State
	text, err := s.c.State(ctx, shardName(shard))
	if err != nil || text == "" {
		return st, err
	}
	if err := json.Unmarshal([]byte(text), &st); err != nil {
		return gateway.State{}, fmt.Errorf("read the session of shard %s: %w", shard, err)
	}
	return st, nil
}

// Save keeps it, unless another node holds the shard by now.
func (s *discordCluster) Save(ctx context.Context, shard gateway.Shard, fence string, st gateway.State) error {
	text, err := json.Marshal(st)
	if err != nil {
		return fmt.Errorf("keep the session of shard %s: %w", shard, err)
	}
	err = s.c.SaveState(ctx, shardName(shard), fence, string(text))
	if errors.Is(err, cluster.ErrFenced) {
		err = fmt.Errorf("%w: %w", gateway.ErrFenced, err)
	}
	return err
}

// Live lists the conversations that were heard of late.
func (s *discordCluster) Live(ctx context.Context, since time.Time, most int) ([]discord.Live, error) {
	list, err := s.live(ctx, since, most)
	out := make([]discord.Live, len(list))
	for i, h := range list {
		out[i] = discord.Live{Conversation: h.conversation, Heard: h.id}
	}
	return out, err
}

// Draw takes one request out of what Discord grants.
func (s *discordCluster) Draw(ctx context.Context, d discord.Draw, patience time.Duration) (time.Duration, error) {
	return s.draw(ctx, discordBudgets(d), d.Priority.Reserve(), d.Priority <= discord.Question, patience)
}

// Limited closes what Discord refused for a while.
func (s *discordCluster) Limited(ctx context.Context, d discord.Draw, wait time.Duration) error {
	return s.limited(ctx, discordBudgets(d), wait)
}

func discordBudgets(d discord.Draw) []rateBudget {
	calls, per := d.Rate()
	return []rateBudget{{d.Method + "/" + d.Place, cluster.Rate{Calls: calls, Per: per}}}
}
