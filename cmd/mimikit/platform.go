package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"mimikit/adapters"
	"mimikit/core/chat"
	"mimikit/core/llm"
	"mimikit/core/telemetry"
	"mimikit/core/worker"
)

// A platform is one of those where people meet the bot, as the program sees it.
type platform struct {
	name     string
	listener adapters.Listener
	poster   adapters.Poster
	feedback adapters.Feedback
	// progress shows what a task does as one message that changes.
	progress func(ctx context.Context, c chat.Conversation, p progress) error
	// fetch reads a file that somebody sent there with a message.
	fetch func(ctx context.Context, message string, f chat.Attachment, w io.Writer, most int64) error
	// edit changes a message of ours.
	edit func(ctx context.Context, c chat.Conversation, messageID, text string, buttons []chat.Button) error
	// stream lets people see a reply while it is worded; nil where nobody does.
	stream  func(ctx context.Context, c chat.Conversation, replyID, person string) *llm.Show
	ready   func() bool // events can reach us
	sockets func() int  // open connections of this node
	serve   *hook       // where the platform calls us; nil where it does not
	check   func(ctx context.Context) []finding
	close   func()
}

// A hook is an address that a platform calls.
type hook struct {
	listen, path string
	handler      http.Handler
	setting      string // that names the address
}

// progress is what a task is doing.
type progress struct {
	task    string // its id
	text    string // Markdown
	buttons []chat.Button
	done    bool // nothing will follow
}

// openPlatforms makes those that are configured. It connects to none.
func (a *App) openPlatforms() error {
	for _, p := range []struct {
		on   bool
		open func() (*platform, error)
	}{
		{a.cfg.Slack.Enabled(), a.slack},
		{a.cfg.Discord.Enabled(), a.discord},
	} {
		if !p.on {
			continue
		}
		opened, err := p.open()
		if err != nil {
			return err
		}
		a.platforms = append(a.platforms, opened)
	}
	return nil
}

func (a *App) platformNames() []string {
	names := make([]string, len(a.platforms))
	for i, p := range a.platforms {
		names[i] = p.name
	}
	return names
}

// listen runs the listeners.
func (a *App) listen(ctx context.Context, g *errgroup.Group) {
	in := &guardedInbox{Inbox: a.inbox, access: a.access, groups: a.groups, files: a.attachments, changed: a.journal.changed, rate: a.rate(), refused: func(platform string) { a.metrics.Input(platform, telemetry.Refused) }}
	for _, p := range a.platforms {
		g.Go(func() error {
			defer p.close()
			return p.listener.Run(ctx, in)
		})
		if h := p.serve; h != nil {
			g.Go(func() error { return a.serveHook(ctx, h) })
		}
		if p.sockets != nil {
			g.Go(func() error {
				for pauseFor(ctx, 5*time.Second) == nil {
					a.metrics.Sockets(p.name, p.sockets())
				}
				return nil
			})
		}
	}
}

func (a *App) serveHook(ctx context.Context, h *hook) error {
	l, err := telemetry.Listen(ctx, h.listen)
	if err != nil {
		return fmt.Errorf("%w (%s)", err, h.setting)
	}
	a.log.Info("hook_listens", "address", l.Addr().String(), "path", h.path)
	mux := http.NewServeMux()
	mux.Handle(h.path, h.handler)
	return telemetry.ServeOn(ctx, l, mux)
}

// ready tells why this node should not be sent traffic, or nil.
func (a *App) ready() error {
	err := a.node.Ready()
	if !a.listens {
		return err
	}
	for _, p := range a.platforms {
		if !p.ready() {
			err = errors.Join(err, fmt.Errorf("%s: nothing that happens there reaches this node yet", p.name))
		}
	}
	return err
}

// attached lists the files that people sent in a conversation, for a worker.
func (a *App) attached(ctx context.Context, c chat.Conversation) ([]worker.Attached, error) {
	var fetch func(ctx context.Context, message string, f chat.Attachment, w io.Writer, most int64) error
	for _, p := range a.platforms {
		if p.name == c.Platform {
			fetch = p.fetch
		}
	}
	if fetch == nil {
		return nil, nil
	}
	files, err := a.attachments.List(ctx, c)
	if err != nil {
		return nil, err
	}
	var out []worker.Attached
	for _, f := range files {
		out = append(out, worker.Attached{
			ID: f.Attachment.ID, Name: f.Attachment.Name, MediaType: f.Attachment.MediaType, Size: f.Attachment.Size, From: cmp.Or(f.Author.Name, f.Author.ID),
			Fetch: func(ctx context.Context, w io.Writer, most int64) error {
				return fetch(ctx, f.Message, f.Attachment, w, most)
			},
		})
	}
	return out, nil
}

// streamed lets people see a reply while it is worded, where their platform can and
// is to.
func (a *App) streamed(ctx context.Context, c chat.Conversation, replyID string, to chat.Author) *llm.Show {
	for _, p := range a.platforms {
		if p.name == c.Platform && p.stream != nil {
			return p.stream(ctx, c, replyID, to.ID)
		}
	}
	return nil
}
