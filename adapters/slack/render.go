package slack

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"mimikit/adapters"
	"mimikit/core/chat"
)

// Bounds of one message, in UTF-16 units. Slack documents 12,000 for a markdown
// block and refuses a message at about 13,200 over all its blocks.
const (
	maxPart     = 11_000
	maxPreview  = 2_500
	maxFallback = 3_000
	maxEdit     = 3_500 // chat.update takes less than chat.postMessage
	maxLabel    = 75
	maxValue    = 2_000
	maxOption   = 150 // of the value of a choice
	perRow      = 25  // elements of one actions block
	buttonsMost = 5   // more become a list to choose from
)

// pings are Slack's marks that ring a channel, a group or a person, wherever they
// stand. Others, such as a link to a channel, do no harm, and <!DOCTYPE is none.
var pings = regexp.MustCompile(`<(?:!(?:here|channel|everyone|subteam\^)|@[UWB][A-Z0-9])`)

// guarded takes their power from such marks with a character that is not seen:
// what a model writes must not ring anybody, nor send them elsewhere than they read.
func guarded(text string) string {
	text = honest(text)
	return pings.ReplaceAllStringFunc(text, func(m string) string { return "<\u2060" + m[1:] })
}

// Split cuts a reply into messages. A reply that would take more than
// Options.MaxParts of them becomes a file, and below it a message that shows its
// beginning.
func (p *Poster) Split(r chat.Reply) []adapters.Part {
	return parts(r, p.api.o.MaxParts)
}

func parts(r chat.Reply, most int) []adapters.Part {
	text := guarded(r.Text)
	texts := split(text, maxPart)
	if len(texts) > most {
		texts = []string{r.Text, preview(text)}
	}
	if strings.TrimSpace(texts[len(texts)-1]) == "" {
		texts[len(texts)-1] = "(no text)"
	}
	list := make([]adapters.Part, len(texts))
	for i, t := range texts {
		list[i] = adapters.Part{
			ReplyID: r.ID, Index: i, Count: len(texts), Text: t, Kind: r.Kind, ReplyTo: r.ReplyTo, At: r.CreatedAt, InputIDs: r.InputIDs,
		}
	}
	list[len(list)-1].Buttons = r.Buttons
	return list
}

// preview is the beginning of a text that is too long to be shown.
func preview(text string) string {
	return split(text, maxPreview)[0] + "\n\n_This is the beginning; the whole text is in the file above._"
}

// isFile tells the parts that are sent as a file: those longer than any message.
func isFile(p adapters.Part) bool { return units(p.Text) > maxPart }

// fileName names the file of a part, so that it can be found again.
func fileName(p adapters.Part) string {
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, p.ReplyID)
	return "reply-" + id + "-" + strconv.Itoa(p.Index) + ".md"
}

// blocks render a text and the buttons below it.
func blocks(text string, buttons []chat.Button) []slack.Block {
	list := []slack.Block{slack.NewMarkdownBlock("", text)}
	return append(list, rows(buttons)...)
}

// rows render buttons, or, when there are many, a list to choose from. It takes
// an action id to tell one press from another; what is meant stands in the value.
func rows(buttons []chat.Button) []slack.Block {
	if len(buttons) > buttonsMost && choosable(buttons) {
		var options []*slack.OptionBlockObject
		for _, b := range buttons[:min(len(buttons), 100)] {
			options = append(options, slack.NewOptionBlockObject(b.Value, plainText(b.Label), nil))
		}
		choice := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plainText("Choose…"), pressAction, options...)
		return []slack.Block{slack.NewActionBlock("", choice)}
	}
	var list []slack.Block
	for from := 0; from < len(buttons) && len(list) < 10; from += perRow {
		var elements []slack.BlockElement
		for i, b := range buttons[from:min(from+perRow, len(buttons))] {
			elements = append(elements, button(from+i, b))
		}
		list = append(list, slack.NewActionBlock("", elements...))
	}
	return list
}

// pressAction begins the action ids of whatever we let people press.
const pressAction = "mimikit_press"

func button(i int, b chat.Button) *slack.ButtonBlockElement {
	e := slack.NewButtonBlockElement(pressAction+"_"+strconv.Itoa(i), prefix(b.Value, maxValue), plainText(b.Label))
	if s := slack.Style(b.Style); s == slack.StylePrimary || s == slack.StyleDanger {
		e.Style = s
	}
	return e
}

func plainText(label string) *slack.TextBlockObject {
	label = strings.Join(strings.Fields(label), " ")
	if units(label) > maxLabel {
		label = prefix(label, maxLabel-1) + "…"
	}
	if label == "" {
		label = "…"
	}
	return slack.NewTextBlockObject(slack.PlainTextType, label, true, false)
}

// choosable reports whether each value is short enough for a list, and none is
// there twice.
func choosable(buttons []chat.Button) bool {
	seen := map[string]bool{}
	for _, b := range buttons {
		if b.Value == "" || units(b.Value) > maxOption || seen[b.Value] || b.Style == string(slack.StyleDanger) {
			return false
		}
		seen[b.Value] = true
	}
	return true
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escape makes a text safe where Slack reads mrkdwn.
func escape(text string) string { return escaper.Replace(text) }
