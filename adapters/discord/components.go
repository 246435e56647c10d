package discord

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/bwmarrin/discordgo"

	"mimikit/core/chat"
)

const (
	customMark  = "mk:" // begins the custom ids that are ours
	selectID    = customMark + "select"
	maxCustom   = 100 - len(customMark)
	inOneRow    = 5
	inOneSelect = 25
	maxLabel    = 80
)

// components are buttons as Discord shows them: up to five in a row, more as a
// select. shown is false when they cannot be, since there are too many or what
// they stand for is too long; then they are to be written out.
func components(buttons []chat.Button) (rows []discordgo.MessageComponent, shown bool) {
	seen := map[string]bool{}
	var all []chat.Button
	for _, b := range buttons {
		switch {
		case b.Value == "" || units(b.Value) > maxCustom:
			return nil, false
		case seen[b.Value]:
			continue // Discord refuses two of one id
		}
		seen[b.Value] = true
		if b.Label = strings.TrimSpace(b.Label); b.Label == "" {
			b.Label = b.Value
		}
		all = append(all, b)
	}
	switch {
	case len(all) == 0:
		return nil, true
	case len(all) > inOneSelect:
		return nil, false
	case len(all) > inOneRow:
		menu := discordgo.SelectMenu{MenuType: discordgo.StringSelectMenu, CustomID: selectID, Placeholder: "Choose one"}
		for _, b := range all {
			menu.Options = append(menu.Options, discordgo.SelectMenuOption{Label: cutUnits(b.Label, 100), Value: b.Value})
		}
		return []discordgo.MessageComponent{discordgo.ActionsRow{Components: []discordgo.MessageComponent{menu}}}, true
	}
	var row discordgo.ActionsRow
	for _, b := range all {
		style := discordgo.SecondaryButton
		switch b.Style {
		case "primary":
			style = discordgo.PrimaryButton
		case "danger":
			style = discordgo.DangerButton
		}
		row.Components = append(row.Components, discordgo.Button{Label: cutUnits(b.Label, maxLabel), Style: style, CustomID: customMark + b.Value})
	}
	return []discordgo.MessageComponent{row}, true
}

// numbered writes out buttons that cannot be shown.
func numbered(buttons []chat.Button) string {
	var b strings.Builder
	if len(buttons) > 0 {
		b.WriteString("\n\n")
	}
	for i, button := range buttons {
		fmt.Fprintf(&b, "%d. %s\n", i+1, button.Label)
	}
	return b.String()
}

// units is the length of a text as Discord counts it, or more.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// cutUnits takes at most so many units of a text, the last of which says that
// there was more.
func cutUnits(s string, most int) string {
	if units(s) <= most {
		return s
	}
	n := 0
	for i, r := range s {
		if n += max(utf16.RuneLen(r), 1); n > most-1 {
			return s[:i] + "…"
		}
	}
	return s
}
