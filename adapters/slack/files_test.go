package slack

import (
	"errors"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/chat"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	for _, order := range []int{0, 1} { // a mention tells nothing of files
		in(t, Options{}, func(t *testing.T, r *rig) {
			r.run()
			r.fake.Say(slackfake.Say{
				Text: "@bot see these", Order: order, Quote: "the &lt;forwarded&gt; words",
				Files: []slackfake.File{
					{Name: "notes.txt", Type: "text/plain", Content: []byte("remember the milk")},
					{Name: "photo.png", Type: "image/png", Content: []byte("\x89PNG")},
					{Name: "shared.md", Type: "text/markdown", Content: []byte("# hi"), External: true},
				},
			})
			m := r.one()
			if len(m.Attachments) != 4 {
				t.Fatalf("order %d: it comes with %+v", order, m.Attachments)
			}
			a := m.Attachments
			if a[0].Name != "notes.txt" || a[0].Text != "remember the milk" || a[0].Size != 17 {
				t.Errorf("the first is %+v", a[0])
			}
			if a[1].Name != "photo.png" || a[1].Text != "" || a[1].URL == "" {
				t.Errorf("the second is %+v", a[1])
			}
			if a[2].Name != "shared.md" || a[2].Text != "# hi" {
				t.Errorf("the third is %+v", a[2])
			}
			if a[3].Text != "the <forwarded> words" || a[3].Name != "shared message of Bob" {
				t.Errorf("the quote is %+v", a[3])
			}
			var b strings.Builder
			if err := r.bot.Files.Fetch(t.Context(), a[1], &b, 100); err != nil || b.String() != "\x89PNG" {
				t.Errorf("fetched %q, %v", b.String(), err)
			}
			if err := r.bot.Files.Fetch(t.Context(), a[1], &b, 2); !errors.Is(err, ErrFileTooLarge) {
				t.Errorf("a file beyond the bound: %v", err)
			}
		})
	}
}

// The token goes to Slack and nowhere else, and a sign-in page is no file.
func TestFilesComeFromSlackOnly(t *testing.T) {
	t.Parallel()
	in(t, Options{}, func(t *testing.T, r *rig) {
		for _, url := range []string{"https://evil.example/files/F1", "http://files.slack.com/F1", "https://slack.com.evil.example/F1", "", "file:///etc/passwd"} {
			var b strings.Builder
			if err := r.bot.Files.Fetch(t.Context(), chat.Attachment{Name: "x", URL: url}, &b, 100); err == nil {
				t.Errorf("%q was fetched: %q", url, b.String())
			}
		}
		c := &checked{w: &strings.Builder{}, left: 1000}
		if _, err := c.Write([]byte("\n <!DOCTYPE html><html>Sign in")); err == nil {
			t.Error("a sign-in page passed for a file")
		}
		c = &checked{w: &strings.Builder{}, left: 1000, html: true}
		if _, err := c.Write([]byte("<html>my page")); err != nil {
			t.Errorf("a page that somebody sent: %v", err)
		}
	})
}
