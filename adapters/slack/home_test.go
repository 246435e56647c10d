package slack

import (
	"encoding/json"
	"strings"
	"testing"

	"mimikit/core/chat"
)

// What is decided about with a button stands above it as it is, to its last byte and
// line; what is too long for that has no buttons.
func TestHomeShowsWhatIsDecidedWhole(t *testing.T) {
	t.Parallel()
	button := []chat.Button{{Label: "Allow once", Value: "question:q1:0"}}
	render := func(text string) string {
		t.Helper()
		data, err := json.Marshal(homeRow(HomeRow{Title: text, Whole: text, Detail: "until noon · q1", Buttons: button}))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	command := "The task `x` wants to use `exec_shell`:\n\n```\necho " + strings.Repeat("a", 400) + "\nrm -rf *\n```\n\nIt waits for your word."
	quoted, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	if got := render(command); !strings.Contains(got, strings.Trim(string(quoted), `"`)) || !strings.Contains(got, "until noon · q1") || !strings.Contains(got, "question:q1:0") {
		t.Errorf("%s", got)
	}
	for _, long := range []string{strings.Repeat("a", maxHomeText), strings.Repeat("&", maxHomeText/4)} {
		if got := render(long); strings.Contains(got, "question:") || !strings.Contains(got, "not decided here") || !strings.Contains(got, "q1") {
			t.Errorf("%s", got)
		}
	}
}
