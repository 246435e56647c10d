package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"mimikit/core/feed"
)

// What reaches the editor from outside its own goroutine.
type (
	itemMsg    feed.Item // said in the conversation
	noteMsg    string    // the terminal's own words, in Markdown
	busyMsg    string    // what is going on
	tasksMsg   []Task    // what runs in the background
	printedMsg struct{}  // the last lines are above the prompt
	tickMsg    struct{}  // the next picture of the spinner
	leaveMsg   struct{}
)

// An editScreen hands what is to be shown to the editor's goroutine.
type editScreen struct{ send func(tea.Msg) }

func (s editScreen) Show(it feed.Item) { s.send(itemMsg(it)) }
func (s editScreen) Note(text string)  { s.send(noteMsg(text)) }
func (s editScreen) Busy(what string)  { s.send(busyMsg(what)) }
func (s editScreen) Tasks(list []Task) { s.send(tasksMsg(list)) }

// edit talks through a terminal with a line editor.
func (t *Terminal) edit(ctx context.Context) error {
	history, err := loadHistory(t.o.HistoryFile)
	if err != nil {
		t.o.Logger.Warn("no history of what was entered", "error", err)
	}
	e := newEditor(lookOf(true, t.env), history)
	e.welcome, e.now = t.welcome(), t.o.Now
	e.warn = func(err error) { t.o.Logger.Warn("history of what was entered not kept", "error", err) }
	program := tea.NewProgram(e, tea.WithInput(t.o.In), tea.WithOutput(t.o.Out), tea.WithEnvironment(t.o.Environ), tea.WithoutSignalHandler())
	inner, l := t.begin(ctx, editScreen{program.Send})
	e.enter = func(line string) (func(), string, bool) { return l.enter(inner, line) }
	stop := context.AfterFunc(ctx, func() { program.Send(leaveMsg{}) })
	_, err = program.Run()
	stop()
	if err = errors.Join(err, l.end()); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// promptMark stands before what is written; what goes on in further lines stands
// below the first.
const promptMark = "› "

// An editor is the part of the screen that changes: a line that says what is
// going on, and below it what is being written. All else is printed above it
// and belongs to the terminal's own scrolling. It is a tea.Model, so only the
// program's goroutine touches it.
type editor struct {
	look    look
	text    textarea.Model
	history *lineHistory
	enter   func(line string) (begin func(), busy string, leave bool)
	warn    func(error)
	now     func() time.Time
	welcome string // Markdown

	width, height int
	greeted       bool
	busy          string
	tasks         []string // what runs in the background, below the prompt
	picture       int      // of the spinner
	ticking       bool     // a tick is on its way
	queue         []string
	printing      bool // lines are on their way to the terminal
	leaving       bool
	pastes        []string // long pastes, shown as a mark
}

var _ tea.Model = (*editor)(nil)

func newEditor(l look, h *lineHistory) *editor {
	text := textarea.New()
	text.ShowLineNumbers = false
	text.DynamicHeight, text.MinHeight, text.MaxHeight, text.MaxContentHeight = true, 1, 10, 2000
	text.SetPromptFunc(ansi.StringWidth(promptMark), func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return promptMark
		}
		return ""
	})
	text.SetStyles(textarea.Styles{}) // the terminal's own colours
	text.SetVirtualCursor(false)      // and its own cursor
	text.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	text.KeyMap.Paste = key.NewBinding() // it would run a program to ask for the clipboard; the terminal pastes
	text.KeyMap.CopySelection = key.NewBinding()
	text.Focus()
	e := &editor{look: l, text: text, history: h, warn: func(error) {}, now: time.Now, welcome: greeting}
	e.resize(80, 24)
	return e
}

// Init is part of tea.Model.
func (e *editor) Init() tea.Cmd { return nil }

// Update is part of tea.Model.
func (e *editor) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		e.resize(msg.Width, msg.Height)
		if !e.greeted { // now that it is known how wide that may be
			e.greeted = true
			e.queue = slices.Concat(e.blocks(render(e.welcome, e.textWidth(), e.look)), e.queue)
		}
	case tea.KeyPressMsg:
		return e, e.key(msg)
	case tea.PasteMsg:
		return e, e.paste(msg)
	case itemMsg:
		e.show(feed.Item(msg))
	case noteMsg:
		e.print(render(string(msg), e.textWidth(), e.look))
	case busyMsg:
		return e, tea.Batch(e.setBusy(string(msg)), e.printNext())
	case tasksMsg:
		e.tasks = taskLines(msg, e.now())
	case tickMsg:
		e.ticking = false
		e.picture++
		return e, e.setBusy(e.busy)
	case printedMsg:
		e.printing = false
	case leaveMsg:
		e.leaving = true
	default:
		var cmd tea.Cmd
		e.text, cmd = e.text.Update(msg)
		return e, cmd
	}
	return e, e.printNext()
}

func (e *editor) resize(width, height int) {
	e.width, e.height = max(width, 1), max(height, 1)
	e.text.MaxHeight = min(max(e.height/2, 1), 10)
	e.text.SetWidth(max(e.width, ansi.StringWidth(promptMark)+2))
}

func (e *editor) textWidth() int { return min(e.width, widest) }

// key handles what is not writing.
func (e *editor) key(k tea.KeyPressMsg) tea.Cmd {
	switch name := k.String(); {
	case name == "enter":
		return e.submit()
	case name == "ctrl+c" && e.text.Value() != "":
		e.clear()
		return nil
	case name == "ctrl+c", name == "ctrl+d" && e.text.Value() == "":
		e.leaving = true
		return e.printNext()
	case name == "ctrl+z":
		return tea.Suspend
	case name == "ctrl+l":
		return tea.ClearScreen
	case (name == "up" || name == "ctrl+p") && e.text.Line() == 0 && e.text.LineInfo().RowOffset == 0:
		if entry, ok := e.history.back(e.text.Value()); ok {
			e.text.SetValue(entry)
		}
		return nil
	case (name == "down" || name == "ctrl+n") && e.text.Line() == e.text.LineCount()-1 && e.text.LineInfo().RowOffset == e.text.LineInfo().Height-1:
		if entry, ok := e.history.forth(); ok {
			e.text.SetValue(entry)
		}
		return nil
	}
	var cmd tea.Cmd
	e.text, cmd = e.text.Update(k)
	return cmd
}

// submit takes what was written, unless a backslash at its end says that it goes
// on.
func (e *editor) submit() tea.Cmd {
	written := e.text.Value()
	if before, ok := strings.CutSuffix(written, `\`); ok {
		e.text.SetValue(before + "\n")
		return nil
	}
	text := e.unfold(written)
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if err := e.history.add(text); err != nil {
		e.warn(err)
	}
	e.clear()
	e.echo(written)
	begin, busy, leave := e.enter(text)
	e.leaving = e.leaving || leave
	show := tea.Batch(e.setBusy(cmp.Or(busy, e.busy)), e.printNext())
	begin()
	return show
}

func (e *editor) clear() {
	e.text.Reset()
	e.pastes = nil
}

// A paste longer than this is shown as a mark: an editor of a few lines is no
// place to look at it.
const (
	longPaste  = 2000 // bytes
	tallPaste  = 20   // line breaks
	pasteLabel = "[paste %d: %d lines]"
)

func (e *editor) paste(p tea.PasteMsg) tea.Cmd {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(p.Content)
	if lines := strings.Count(text, "\n"); len(text) > longPaste || lines > tallPaste {
		e.pastes = append(e.pastes, text)
		text = fmt.Sprintf(pasteLabel, len(e.pastes), lines+1)
	}
	e.text.InsertString(text)
	var cmd tea.Cmd
	e.text, cmd = e.text.Update(nil) // fits the height
	return cmd
}

// unfold puts pastes where their marks stand.
func (e *editor) unfold(text string) string {
	for i, p := range e.pastes {
		text = strings.Replace(text, fmt.Sprintf(pasteLabel, i+1, strings.Count(p, "\n")+1), p, 1)
	}
	return text
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// setBusy shows what is going on, and keeps the spinner turning as long as
// something does.
func (e *editor) setBusy(what string) tea.Cmd {
	e.busy = firstLine(what)
	if e.busy == "" || e.ticking {
		return nil
	}
	e.ticking = true
	return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} })
}

// View is part of tea.Model.
func (e *editor) View() tea.View {
	if e.leaving {
		return tea.NewView("")
	}
	content, above := e.text.View(), 0
	if e.busy != "" {
		line := string(spinner[e.picture%len(spinner)]) + " " + e.busy
		content, above = e.look.paint(faint, ansi.Truncate(line, e.width, "…"))+"\n"+content, 1
	}
	for _, line := range e.tasks {
		content += "\n" + e.look.paint(faint, ansi.Truncate(line, e.width, "…"))
	}
	v := tea.NewView(content)
	if c := e.text.Cursor(); c != nil {
		c.Y += above
		v.Cursor = c
	}
	return v
}

// echo keeps what was entered above the prompt.
func (e *editor) echo(text string) {
	lines := strings.Split(clean(text), "\n")
	for i, line := range lines {
		mark := strings.Repeat(" ", ansi.StringWidth(promptMark))
		if i == 0 {
			mark = promptMark
		}
		lines[i] = e.look.paint(bold, mark) + line
	}
	e.print(strings.Join(lines, "\n"))
}

func (e *editor) show(it feed.Item) {
	text := render(it.Text, e.textWidth(), e.look)
	if it.Kind == feed.KindNotice {
		text = e.look.paint(warn, "!") + " " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	e.print(text)
}

// print puts painted text above the prompt, with an empty line below it. Lines
// are cut to the width and put there a few at a time: the library scrolls by
// counting them, and loses count of those that do not fit the screen.
func (e *editor) print(text string) { e.queue = append(e.queue, e.blocks(text)...) }

func (e *editor) blocks(text string) []string {
	var out []string
	for lines := range slices.Chunk(append(hardwrap(text, e.width), " "), max(e.height/2, 1)) {
		out = append(out, strings.Join(lines, "\n"))
	}
	return out
}

// printNext prints what is first in the queue, one at a time to keep the order,
// and leaves when there is no more and it is time.
func (e *editor) printNext() tea.Cmd {
	switch {
	case e.printing:
		return nil
	case len(e.queue) > 0:
		lines := e.queue[0]
		e.queue, e.printing = e.queue[1:], true
		return tea.Sequence(tea.Println(cmp.Or(lines, " ")), func() tea.Msg { return printedMsg{} })
	case e.leaving:
		return tea.Quit
	}
	return nil
}
