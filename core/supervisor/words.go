package supervisor

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"mimikit/core/task"
	"mimikit/core/trigger"
)

var (
	//go:embed evaluate.md
	evaluateText string
	//go:embed because.md
	becauseText string
)

// words are what internal and fired tasks are told.
type words struct{ evaluate, because *template.Template }

func parseWords() (words, error) {
	evaluate, err := template.New("evaluate.md").Parse(evaluateText)
	if err != nil {
		return words{}, fmt.Errorf("new supervisor: %w", err)
	}
	because, err := template.New("because.md").Parse(becauseText)
	if err != nil {
		return words{}, fmt.Errorf("new supervisor: %w", err)
	}
	return words{evaluate, because}, nil
}

// ask words the questions of conditions.
func (w words) ask(questions []Question) (string, error) {
	quoted := make([]Question, len(questions))
	for i, q := range questions {
		quoted[i] = Question{q.Key, quote(q.Text)}
	}
	var b strings.Builder
	if err := w.evaluate.Execute(&b, quoted); err != nil {
		return "", fmt.Errorf("word the questions of conditions: %w", err)
	}
	return b.String(), nil
}

// readAnswers reads the JSON object in a text: its values are true and false, or yes
// and no. What is neither is left out.
func readAnswers(output string) map[string]bool {
	from, to := strings.IndexByte(output, '{'), strings.LastIndexByte(output, '}')
	if from < 0 || to < from {
		return nil
	}
	var values map[string]any
	if json.Unmarshal([]byte(output[from:to+1]), &values) != nil {
		return nil
	}
	out := map[string]bool{}
	for key, v := range values {
		switch strings.ToLower(fmt.Sprint(v)) {
		case "true", "yes":
			out[key] = true
		case "false", "no":
			out[key] = false
		}
	}
	return out
}

// Bounds of what a task is told of the results that it waited for, in bytes.
const (
	mostOfResult  = 24 << 10
	mostOfResults = 96 << 10
)

// prompt is what the task of a firing is told: its own, and what made it start.
func (w words) prompt(t trigger.Trigger, causes []trigger.Cause, results map[string]task.Task) (string, error) {
	type result struct{ ID, Title, Status, Text string }
	data := struct {
		Prompt, Trigger string
		Results         []result
		Files           []string
	}{Prompt: t.Prompt, Trigger: t.ID}
	room := mostOfResults
	for _, c := range causes {
		switch c.Type {
		case trigger.FileChanged:
			data.Files = append(data.Files, strconv.Quote(c.Pattern)+" have changed")
		case trigger.FileExists:
			if c.Pattern != "" {
				data.Files = append(data.Files, strconv.Quote(c.Pattern)+" exist")
			}
		case trigger.TaskDone, trigger.TaskFailed:
			r := results[c.TaskID]
			text := r.Output
			if r.Error != "" {
				text = strings.TrimSpace("It failed: " + r.Error + "\n" + text)
			}
			text = quote(shorten(text, min(room, mostOfResult)))
			room = max(0, room-len(text))
			data.Results = append(data.Results, result{c.TaskID, strconv.Quote(r.Title), string(r.Status), text})
		}
	}
	if len(data.Results)+len(data.Files) == 0 {
		return "", nil
	}
	var b strings.Builder
	if err := w.because.Execute(&b, data); err != nil {
		return "", fmt.Errorf("word the task of trigger %s: %w", t.ID, err)
	}
	return strings.TrimSpace(b.String()), nil
}

// quote begins every line with a mark, so that no text can end its own quotation.
func quote(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n").Replace(strings.TrimSpace(s))
	return "> " + strings.ReplaceAll(s, "\n", "\n> ")
}

// shorten cuts a text at a whole character and says how much of it is gone.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	at := most
	for at > 0 && s[at]&0xC0 == 0x80 {
		at--
	}
	return fmt.Sprintf("%s\n[cut: %d of %d bytes are not shown]", s[:at], len(s)-at, len(s))
}
