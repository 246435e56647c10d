package slack

import (
	"context"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"mimikit/core/chat"
)

// Home gives what App Home shows a person.
type Home interface {
	Home(ctx context.Context, c Caller) (HomeView, error)
}

// A HomeView is what stands in App Home. Its texts are plain, not Markdown.
type HomeView struct {
	Intro    string
	Sections []HomeSection
}

// A HomeSection is a list with a title.
type HomeSection struct {
	Title string
	Empty string // what stands there when there are no rows
	Rows  []HomeRow
}

// A HomeRow is a thing and what can be done about it.
type HomeRow struct {
	Title string
	// Whole is what its buttons decide about. It is shown as it stands in place of the
	// title, of which only a beginning is; what is too long for that has no buttons.
	Whole   string
	Detail  string
	Buttons []chat.Button
}

const (
	maxHomeBlocks = 100
	maxHomeRows   = 20   // of a section
	maxHomeText   = 2900 // bytes of a block; Slack takes 3,000 characters
	homeSoon      = 10 * time.Second
)

// homeOpened publishes App Home for whoever opened it.
func (l *Listener) homeOpened(p post) Outcome {
	if p.Tab != "" && p.Tab != "home" || p.User == "" {
		return Ignored
	}
	l.later(func(ctx context.Context) { l.publish(ctx, p.User, "") })
	return Handled
}

// publish shows a person their App Home, with the answer to what they pressed
// there, if any.
func (l *Listener) publish(ctx context.Context, user, answer string) {
	ctx, cancel := context.WithTimeout(ctx, homeSoon)
	defer cancel()
	view := HomeView{}
	if l.b.o.Home != nil {
		who, err := l.caller(ctx, user, "", "")
		if err == nil {
			view, err = l.b.o.Home.Home(ctx, who)
		}
		if err != nil {
			l.b.o.Logger.Error("slack_home_not_made", "user", user, "error", err)
			view = HomeView{Intro: sorry}
		}
	}
	err := l.b.api.call(ctx, Draw{Method: "views.publish", Priority: Question}, 5*time.Second, func(ctx context.Context) error {
		_, err := l.b.api.sdk.PublishViewContext(ctx, slack.PublishViewContextRequest{
			UserID: user, View: slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: l.homeBlocks(view, answer)}},
		})
		return err
	})
	if err != nil {
		l.b.o.Logger.Warn("slack_home_not_shown", "user", user, "error", err)
	}
}

// homeBlocks render App Home.
func (l *Listener) homeBlocks(v HomeView, answer string) []slack.Block {
	intro := v.Intro
	if intro == "" {
		intro = "Hello! I am " + l.b.o.Name + ". Mention me in a channel, or write to me under Messages. I answer in the thread where I was asked."
	}
	list := []slack.Block{mrkdwn(escape(intro))}
	if answer != "" {
		list = append(list, slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, escape(shorten(answer, 2000)), false, false)))
	}
	for _, s := range v.Sections {
		if len(list)+2 > maxHomeBlocks {
			break
		}
		list = append(list, slack.NewHeaderBlock(headline(s.Title)))
		if len(s.Rows) == 0 && s.Empty != "" {
			list = append(list, mrkdwn("_"+escape(s.Empty)+"_"))
		}
		for i, r := range s.Rows {
			if i == maxHomeRows || len(list)+4 > maxHomeBlocks {
				list = append(list, mrkdwn("_… and more_"))
				break
			}
			list = append(list, homeRow(r)...)
		}
	}
	return list
}

func homeRow(r HomeRow) []slack.Block {
	buttons, detail := r.Buttons, "\n"+escape(shorten(r.Detail, 2000))
	if r.Detail == "" {
		detail = ""
	}
	if whole := escape(r.Whole) + detail; r.Whole != "" && len(whole) <= maxHomeText {
		return append([]slack.Block{mrkdwn(whole)}, rows(buttons)...)
	} else if r.Whole != "" {
		buttons, detail = nil, detail+"\n"+tooLongForHome
	}
	text := "*" + strings.ReplaceAll(escape(shorten(strings.Join(strings.Fields(r.Title), " "), 300)), "*", "∗") + "*"
	return append([]slack.Block{mrkdwn(text + detail)}, rows(buttons)...)
}

const tooLongForHome = "It is too long to be shown here whole, so it is not decided here but where it was asked, or with the commands `questions` and `answer`."

func mrkdwn(text string) *slack.SectionBlock {
	return slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, shorten(text, maxHomeText), false, false), nil, nil)
}

func headline(title string) *slack.TextBlockObject {
	if title == "" {
		title = "…"
	}
	return slack.NewTextBlockObject(slack.PlainTextType, prefix(title, 140), true, false)
}
