package page_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"mimikit/core/page"
)

// browser starts a Chromium of the machine. Where there is none the test is
// skipped, unless MIMIKIT_NEED_BROWSER says that there must be one.
func browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		if os.Getenv("MIMIKIT_NEED_BROWSER") != "" {
			t.Fatal("there is no Chromium on PATH")
		}
		t.Skip("there is no Chromium on PATH")
	}
	profile, err := os.MkdirTemp("", "mimikit-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) }) // Chromium may still be writing to it
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.Env("TMPDIR="+profile))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has no sandbox for root
	}
	// As long as the tests themselves: how fast a browser is on a busy machine says nothing.
	// Not t.Context(), at whose end it would be killed, and leave behind what it writes: it
	// is told to close then, before the servers go that it holds connections to.
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	if end, bounded := t.Deadline(); bounded {
		ctx, cancel = context.WithDeadline(ctx, end.Add(-5*time.Second))
		t.Cleanup(cancel)
	}
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	closed := make(chan struct{})
	context.AfterFunc(t.Context(), func() {
		defer close(closed)
		closing, over := context.WithTimeout(ctx, 10*time.Second)
		defer over()
		_ = chromedp.Cancel(closing) // it ends by itself; else it is killed
		cancel()
	})
	t.Cleanup(func() { <-closed })
	return ctx
}

// run does something in the browser.
func run(ctx context.Context, t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// Everything that can be done is reached with the Tab key alone, and done with
// Enter. What is brought up to date meanwhile keeps the focus where it was.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := serve(t, page.Options{Local: true, Every: 500 * time.Millisecond})
	var all int
	run(ctx, t, chromedp.Navigate(s.url+"/"), chromedp.WaitReady("#audit"),
		chromedp.Evaluate(`document.querySelectorAll("a[href], button, input:not([type=hidden])").length`, &all))
	seen := map[string]bool{}
	for range 3 * all {
		var at string
		run(ctx, t, chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(
			`(() => { const e = document.activeElement; return e.tagName + " " + (e.dataset.key || e.id || e.getAttribute("href") || e.textContent.trim()); })()`, &at))
		seen[at] = true
		if at == "BUTTON cancel t00000" {
			break
		}
	}
	for _, want := range []string{"A #status", "A #dead", "INPUT words", "BUTTON Run", "A task t00000", "BUTTON cancel t00000"} {
		if !seen[want] {
			t.Errorf("the keyboard does not reach %q: %v", want, seen)
		}
	}
	// The section is replaced while the button has the focus.
	s.mu.Lock()
	s.tasks = 4
	s.mu.Unlock()
	var key string
	run(ctx, t, chromedp.Poll(`document.querySelector('[data-key="task t00003"]') !== null`, nil, chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(time.Hour)), chromedp.Evaluate(`document.activeElement.dataset.key || ""`, &key))
	if key != "cancel t00000" {
		t.Errorf("after the update the focus is at %q", key)
	}
	run(ctx, t, chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(`a[href="/"]`))
	if n := s.count("cancel t00000"); n != 1 {
		t.Errorf("%d cancels", n)
	}
}

// Every control of a page on which there is everything is reached with the Tab key,
// shows that it has the focus, and lies in the window then.
func TestAllReached(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := serve(t, page.Options{Local: true, Every: time.Hour})
	s.mu.Lock()
	s.tasks, s.rich = 10_000, true
	s.mu.Unlock()
	for _, l := range looks() {
		if l.width != 360 && l.width != 1440 {
			continue
		}
		var all int
		var left []string
		run(ctx, t, l.set(), chromedp.Navigate(s.url+"/"), chromedp.WaitReady("#audit"), chromedp.Evaluate(`
			window.reached = new Set(); window.unseen = [];
			addEventListener("focusin", e => {
				const s = getComputedStyle(e.target), box = e.target.getBoundingClientRect();
				reached.add(e.target);
				if (s.outlineStyle === "none" || parseFloat(s.outlineWidth) < 2) unseen.push(e.target.outerHTML + " does not show the focus");
				if (box.top > innerHeight || box.bottom < 0 || box.left >= innerWidth || box.right <= 0) unseen.push(e.target.outerHTML + " is out of sight");
			});
			document.querySelectorAll("a[href], button, input:not([type=hidden]), [tabindex='0']").length`, &all))
		if all < 80 {
			t.Fatalf("%s: there are only %d controls", l.name, all)
		}
		tab := make(chromedp.Tasks, all)
		for i := range tab {
			tab[i] = chromedp.KeyEvent(kb.Tab)
		}
		run(ctx, t, tab, chromedp.Evaluate(`unseen.concat(Array.from(document.querySelectorAll("a[href], button, input:not([type=hidden]), [tabindex='0']")).filter(e => !reached.has(e)).map(e => e.outerHTML + " is not reached"))`, &left))
		if len(left) > 0 {
			t.Errorf("%s: of %d controls\n%s", l.name, all, strings.Join(left[:min(len(left), 5)], "\n"))
		}
	}
}

// Whoever looks at the page is told of what matters to them, and not of every update;
// whose button is gone stays where they were, and what they point at does not move.
func TestLiveForPeople(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := serve(t, page.Options{Local: true, Every: 200 * time.Millisecond})
	tasks := func(n int) chromedp.Action {
		return chromedp.ActionFunc(func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.tasks = n
			return nil
		})
	}
	until := func(js string) chromedp.Action {
		return chromedp.Poll(js, nil, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(time.Hour))
	}
	var where, said string
	var stays bool
	var spoken int
	run(ctx, t, chromedp.EmulateViewport(1440, 2000), chromedp.Navigate(s.url+"/"), chromedp.WaitReady("#audit"), chromedp.Evaluate(`
		window.spoken = 0;
		document.querySelectorAll("[role=status], [role=alert], [aria-live]").forEach(e => new MutationObserver(() => spoken++).observe(e, {childList: true, characterData: true, subtree: true}));
		document.querySelector('[data-key="cancel t00000"]').focus();
		window.line = document.querySelector("#pipeline polyline"); window.drawn = line.getAttribute("points")`, nil),
		// What changes in numbers only changes where it is, so that a place is not lost.
		until(`document.querySelector("#pipeline polyline").getAttribute("points") !== drawn`), chromedp.Evaluate(`document.contains(line)`, &stays),
		// The button goes, with all the tasks: the focus goes on in its section.
		tasks(0), until(`document.querySelector('[data-key="cancel t00000"]') === null`),
		chromedp.Evaluate(`document.activeElement.id`, &where))
	if !stays {
		t.Error("a section in which only numbers changed was replaced")
	}
	if where != "tasks" {
		t.Errorf("when its button is gone the focus is at %q, want the section", where)
	}
	// A section stays as it is while somebody points at one of its buttons, and marks a text.
	var box map[string]float64
	const row = `document.querySelector('[data-key="task t00005"]') !== null`
	run(ctx, t, tasks(4), until(`document.querySelector('[data-key="cancel t00000"]') !== null`),
		chromedp.Evaluate(`(() => { const b = document.querySelector('[data-key="cancel t00000"]').getBoundingClientRect(); return {x: b.x + 5, y: b.y + 5}; })()`, &box))
	var moved bool
	run(ctx, t, chromedp.MouseEvent(input.MouseMoved, box["x"], box["y"]), until(`document.querySelector("#tasks a:hover, #tasks button:hover") !== null`), tasks(8),
		chromedp.Evaluate(`window.was = document.querySelector("#at span").textContent`, nil), until(`document.querySelector("#at span").textContent !== was`),
		chromedp.Evaluate(`was = document.querySelector("#at span").textContent`, nil), until(`document.querySelector("#at span").textContent !== was`),
		chromedp.Evaluate(row, &moved))
	if moved {
		t.Error("a row came while somebody pointed at a button")
	}
	run(ctx, t, chromedp.MouseEvent(input.MouseMoved, 2, 2), until(row), chromedp.Evaluate(`spoken`, &spoken))
	if spoken != 0 {
		t.Errorf("the page spoke %d times though nothing is wrong", spoken)
	}
	// When it is not brought up to date any more, it says so once, for all to see.
	s.stop()
	run(ctx, t, until(`document.getElementById("said").textContent !== ""`), chromedp.Text("#said", &said, chromedp.NodeVisible))
	if !strings.Contains(said, "not being brought up to date") {
		t.Errorf("it says %q", said)
	}
}

// rebels listens for what no text of other people may do: open a dialog, or try what
// the policy forbids.
func rebels(ctx context.Context) func() []string {
	var mu sync.Mutex
	var list []string
	chromedp.ListenTarget(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := ev.(type) {
		case *cdppage.EventJavascriptDialogOpening:
			list = append(list, "a dialog: "+e.Message)
		case *log.EventEntryAdded:
			if e.Entry.Source == log.SourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") {
				list = append(list, e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			list = append(list, e.ExceptionDetails.Error())
		}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

// What people wrote runs nothing, is no tag, and looks like what it is: on the page as
// it is loaded, as it is brought up to date, and in every answer.
func TestHostileInBrowser(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	s := serve(t, page.Options{Local: true, Every: 500 * time.Millisecond})
	s.mu.Lock()
	s.rich = true
	s.mu.Unlock()
	rebelled := rebels(ctx)
	const strange = `Array.from(document.querySelectorAll("img, iframe, object, embed, base, script:not([src]), [onerror], [onclick], [style], a[href^='javascript'], a[href^='//'], a[href^='http']")).map(e => e.outerHTML).join("\n")`
	check := func(where string) {
		t.Helper()
		var found, text string
		run(ctx, t, chromedp.Evaluate(strange, &found), chromedp.Evaluate(`document.body.innerText`, &text))
		if found != "" {
			t.Errorf("%s has %s", where, found)
		}
		for _, want := range []string{"<script>alert(1)</script>", "⟨U+2060⟩"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not show %q", where, want)
			}
		}
		if i := strings.IndexAny(text, "\u202e\u2066\u200b\u2060\ufeff\U000e0041"); i >= 0 {
			t.Errorf("%s has a character that is not seen, near %q", where, text[max(0, i-30):min(len(text), i+30)])
		}
		if got := rebelled(); len(got) > 0 {
			t.Errorf("%s: %q", where, got)
		}
	}
	run(ctx, t, log.Enable(), runtime.Enable(), chromedp.Navigate(s.url+"/"), chromedp.WaitReady("#audit"))
	check("the page")
	var shown string
	run(ctx, t, chromedp.Evaluate(`document.querySelector("#questions code.block").innerText`, &shown))
	if shown != asked {
		t.Errorf("what is decided about is shown as\n%s\nand is\n%s", shown, asked)
	}
	s.mu.Lock()
	s.tasks = 9
	s.mu.Unlock()
	run(ctx, t, chromedp.Poll(`document.querySelector('[data-key="task t00008"]') !== null`, nil, chromedp.WithPollingInterval(100*time.Millisecond), chromedp.WithPollingTimeout(time.Hour)))
	check("the page brought up to date")
	for _, path := range []string{"/show?words=dead", "/show?words=help", "/sure?words=" + url.QueryEscape("dead drop "+strings.ReplaceAll("<script>alert(1)</script>"+deceiving, " ", ""))} {
		run(ctx, t, chromedp.Navigate(s.url+path), chromedp.WaitReady("#words"))
		check(path)
	}
}
