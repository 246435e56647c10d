package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"mimikit/core/page"
)

// faults looks for what a person would see as broken: text that is cut, broken within a
// word, beyond its box or over other text; controls that lie over each other or cannot
// be told from what is around them; a page or a table wider than its window; contrast
// below 4.5; and what has no name for those who listen.
const faults = `(() => {
  const out = [];
  if (document.documentElement.scrollWidth > innerWidth + 1) out.push("the page is " + document.documentElement.scrollWidth + " wide in a window of " + innerWidth);
  const lum = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : Math.pow((v + .055) / 1.055, 2.4); }); return .2126 * r + .7152 * g + .0722 * b; };
  const rgb = s => { const m = s.match(/[\d.]+/g).map(Number); return m.length > 3 && m[3] === 0 ? null : m.slice(0, 3); };
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c) return c; } return rgb(getComputedStyle(document.body).backgroundColor) || [255, 255, 255]; };
  const against = (a, b) => { a = lum(a); b = lum(b); return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); };
  const name = (e, text) => e.tagName.toLowerCase() + " " + (text || e.textContent || e.id).trim().slice(0, 30);
  const range = document.createRange();
  const boxes = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = Array.from(e.childNodes).filter(n => n.nodeType === 3 && n.data.trim());
    if (!own.length || e.closest(".aside, .skip, script, svg") || !e.checkVisibility()) continue;
    const head = e.closest("thead");
    if (head && getComputedStyle(head).clipPath !== "none") continue; // there for those who listen

    const s = getComputedStyle(e), who = name(e, own[0].data);
    const contrast = against(rgb(s.color), ground(e));
    if (contrast < 4.5) out.push(who + ": contrast " + contrast.toFixed(2));
    if (e.scrollWidth > e.clientWidth + 1 && s.overflowX === "hidden") out.push(who + " is cut");
    const room = (e.closest("section") || document.body).getBoundingClientRect();
    for (const n of own) {
      range.selectNodeContents(n);
      for (const box of range.getClientRects()) {
        const seen = e.closest(".text")?.getBoundingClientRect(); // which scrolls
        if (!seen || box.bottom <= seen.bottom) boxes.push([who, box, e]);
        if (box.right > room.right + 1 || box.left < room.left - 1) out.push(who + " goes beyond its section");
      }
      for (const word of n.data.matchAll(/(?<![^\s])[\p{Script=Latin}\d_]{2,20}(?=[\s,.:;…]|$)/gu)) {
        range.setStart(n, word.index); range.setEnd(n, word.index + word[0].length);
        const lines = new Set(Array.from(range.getClientRects(), b => Math.round(b.top)));
        if (lines.size > 1) out.push(who + ": the word " + word[0] + " is broken");
      }
    }
  }
  const over = (p, q, w, h) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > w && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > h;
  for (let i = 0; i < boxes.length; i++) for (let j = i + 1; j < boxes.length && j < i + 400; j++) {
    const [m, p, e] = boxes[i], [n, q, f] = boxes[j];
    if (e !== f && e.closest(".table") === f.closest(".table") && over(p, q, 2, 4)) out.push(m + " lies over " + n);
  }
  for (const t of document.querySelectorAll(".table")) {
    if (t.scrollWidth > t.clientWidth + 1) out.push("the table " + t.getAttribute("aria-label") + " is " + t.scrollWidth + " wide in " + t.clientWidth);
  }
  const controls = Array.from(document.querySelectorAll("input:not([type=hidden]), button, a[href]:not(.skip)"));
  controls.forEach((e, i) => {
    const s = getComputedStyle(e), box = e.getBoundingClientRect();
    const label = (e.labels && e.labels.length ? e.labels[0].textContent : "") + e.textContent + (e.getAttribute("aria-label") || "");
    if (!label.trim()) out.push("a " + e.tagName + " has no name");
    if (box.width < 10 || box.height < 10 || !e.checkVisibility()) out.push(name(e) + " is not there to be pressed");
    if (s.borderTopStyle !== "none" && against(rgb(s.borderTopColor), ground(e.parentElement)) < 3) out.push(name(e) + ": its border is hard to see");
    for (let j = i + 1; j < controls.length && j < i + 60; j++) {
      if (over(box, controls[j].getBoundingClientRect(), 1, 1)) out.push(name(e) + " lies over " + name(controls[j]));
    }
  });
  for (const e of document.querySelectorAll("[placeholder]")) {
    const contrast = against(rgb(getComputedStyle(e, "::placeholder").color), ground(e));
    if (contrast < 4.5) out.push(name(e) + ": its placeholder has contrast " + contrast.toFixed(2));
  }
  const pen = document.createElement("canvas").getContext("2d");
  for (const e of document.querySelectorAll("td[data-head]")) {
    const s = getComputedStyle(e, "::before");
    pen.font = s.fontWeight + " " + s.fontSize + " " + s.fontFamily;
    if (s.content === "none" || !e.checkVisibility()) continue;
    if (!e.textContent.trim()) out.push("the label " + e.dataset.head + " stands before nothing");
    const unbroken = s.whiteSpace === "nowrap" ? [e.dataset.head] : e.dataset.head.split(" ");
    if (unbroken.some(word => pen.measureText(word).width > parseFloat(s.width) + 1)) out.push("the label " + e.dataset.head + " has no room");
  }
  for (const e of document.querySelectorAll("svg, [role=region], section")) {
    if (!e.getAttribute("aria-label") && !document.getElementById(e.getAttribute("aria-labelledby"))) out.push("a " + e.tagName + " has no name");
  }
  const ids = Array.from(document.querySelectorAll("[id]"), e => e.id);
  if (new Set(ids).size !== ids.length) out.push("two elements have one id");
  return out.slice(0, 20).join("\n");
})()`

// A look is a way in which somebody has the page before them.
type look struct {
	name   string
	width  int64
	scale  float64
	dark   bool
	forced bool
}

// looks are light and dark at all widths, and what a person may set besides: colors of
// their own, twice the size.
func looks() (out []look) {
	for _, dark := range []bool{false, true} {
		name := "light"
		if dark {
			name = "dark"
		}
		for _, width := range []int64{1440, 1056, 1024, 768, 704, 360, 320} {
			out = append(out, look{fmt.Sprintf("%s, %d wide", name, width), width, 1, dark, false})
		}
		out = append(out, look{name + ", twice the size", 720, 2, dark, false},
			look{name + ", forced colors", 1440, 1, dark, true}, look{name + ", forced colors, 360 wide", 360, 1, dark, true})
	}
	return out
}

func (l look) set() chromedp.Action {
	scheme, forced := "light", "none"
	if l.dark {
		scheme = "dark"
	}
	if l.forced {
		forced = "active"
	}
	return chromedp.Tasks{
		chromedp.EmulateViewport(l.width, 800, chromedp.EmulateScale(l.scale)),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "forced-colors", Value: forced}, {Name: "prefers-reduced-motion", Value: "reduce"}}),
	}
}

// The page in light and dark, wide and narrow, with nothing, some and much on it:
// nothing is cut, overlapping or hard to read. So are the answers and the login.
func TestLooks(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	shots := os.Getenv("MIMIKIT_SHOTS") // a directory that keeps the pictures, to look at
	see := func(url, name string, l look) {
		t.Helper()
		var found string
		run(ctx, t, l.set(), chromedp.Navigate(url), chromedp.WaitReady("main"), chromedp.Evaluate(faults, &found))
		if found != "" {
			t.Errorf("%s, %s:\n%s", name, l.name, found)
		}
		if shots == "" {
			return
		}
		var picture []byte
		run(ctx, t, chromedp.FullScreenshot(&picture, 100))
		if err := os.WriteFile(filepath.Join(shots, strings.ReplaceAll(strings.ReplaceAll(name+" "+l.name, ",", ""), " ", "-")+".png"), picture, 0o600); err != nil {
			t.Error(err)
		}
	}
	for _, tasks := range []int{0, 10, 10_000} {
		s := serve(t, page.Options{Local: true, Every: 500 * time.Millisecond})
		s.mu.Lock()
		s.tasks, s.rich = tasks, tasks > 0
		s.mu.Unlock()
		for _, l := range looks() {
			see(s.url+"/", fmt.Sprintf("%d tasks", tasks), l)
			if tasks != 10 || l.width != 360 && l.width != 1440 {
				continue
			}
			for _, path := range []string{"/show?words=task+t1", "/show?words=tasks+all", "/show?words=streams", "/sure?words=dead+drop+" + strings.Repeat("longid", 20)} {
				see(s.url+path, path[1:5]+path[12:17], l)
			}
		}
		run(ctx, t, chromedp.Navigate("about:blank")) // lets go of the live stream
	}
	s := serve(t, page.Options{Token: token})
	for _, l := range looks() {
		see(s.url+"/login", "login", l)
	}
}
