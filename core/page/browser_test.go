package page_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
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
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(profile))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has no sandbox for root
	}
	// As long as the tests themselves: how fast a browser is on a busy machine says nothing.
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	if end, bounded := t.Deadline(); bounded {
		ctx, cancel = context.WithDeadline(ctx, end.Add(-5*time.Second))
		t.Cleanup(cancel)
	}
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	t.Cleanup(cancel)
	return ctx
}

// run does something in the browser.
func run(ctx context.Context, t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// faults looks for what a person would see as broken: text that is cut or lies over
// other text, a page wider than its window, contrast below 4.5.
const faults = `(() => {
  const out = [];
  if (document.documentElement.scrollWidth > innerWidth + 1) out.push("the page is " + document.documentElement.scrollWidth + " wide in a window of " + innerWidth);
  const lum = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : Math.pow((v + .055) / 1.055, 2.4); }); return .2126 * r + .7152 * g + .0722 * b; };
  const rgb = s => { const m = s.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m.slice(0, 3); };
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c) return c; } return [255, 255, 255]; };
  const boxes = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = Array.from(e.childNodes).filter(n => n.nodeType === 3 && n.data.trim());
    if (!own.length || e.closest(".aside, .skip, script") || !e.checkVisibility()) continue;
    const head = e.closest("thead");
    if (head && getComputedStyle(head).clipPath !== "none") continue; // there for those who listen

    const s = getComputedStyle(e), a = lum(rgb(s.color)), b = lum(ground(e));
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const name = e.tagName.toLowerCase() + " " + own[0].data.trim().slice(0, 30);
    if (contrast < 4.5) out.push(name + ": contrast " + contrast.toFixed(2));
    if (e.scrollWidth > e.clientWidth + 1 && s.overflowX === "hidden") out.push(name + " is cut");
    for (const n of own) {
      const r = document.createRange(); r.selectNodeContents(n);
      for (const box of r.getClientRects()) boxes.push([name, box, e]);
    }
  }
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length && j < i + 400; j++) {
    const [m, p, e] = boxes[i], [n, q, f] = boxes[j];
    const table = e.closest(".table"), other = f.closest(".table");
    if (e === f || table !== other) continue;
    const w = Math.min(p.right, q.right) - Math.max(p.left, q.left), h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (w > 2 && h > 4) out.push(m + " lies over " + n);
  }
  for (const e of document.querySelectorAll("input:not([type=hidden]), button, a")) {
    const label = (e.labels && e.labels.length ? e.labels[0].textContent : "") + e.textContent + (e.getAttribute("aria-label") || "");
    if (!label.trim()) out.push("a " + e.tagName + " has no name");
  }
  return out.slice(0, 20).join("\n");
})()`

// The page in light and dark, wide and narrow, with nothing, some and much on it:
// nothing is cut, overlapping or hard to read.
func TestLooks(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	shots := os.Getenv("MIMIKIT_SHOTS") // a directory that keeps the pictures, to look at
	for _, tasks := range []int{0, 10, 10_000} {
		s := serve(t, page.Options{Local: true, Every: 500 * time.Millisecond})
		s.mu.Lock()
		s.tasks, s.rich = tasks, tasks > 0
		s.mu.Unlock()
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1440, 768, 360} {
				name := fmt.Sprintf("%d tasks, %s, %d wide", tasks, scheme, width)
				var found string
				var picture []byte
				run(ctx, t,
					chromedp.EmulateViewport(width, 800),
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
					chromedp.Navigate(s.url+"/"), chromedp.WaitReady("#audit"),
					chromedp.Evaluate(faults, &found),
				)
				if shots != "" {
					run(ctx, t, chromedp.FullScreenshot(&picture, 100))
				}
				if found != "" {
					t.Errorf("%s:\n%s", name, found)
				}
				if shots != "" {
					if err := os.WriteFile(filepath.Join(shots, strings.ReplaceAll(strings.ReplaceAll(name, ", ", "-"), " ", "")+".png"), picture, 0o600); err != nil {
						t.Error(err)
					}
				}
			}
		}
		run(ctx, t, chromedp.Navigate("about:blank")) // lets go of the live stream
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
