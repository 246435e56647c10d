package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mimikit/core/admin"
)

const (
	slowEvery = 5   // looks, for what changes seldom
	kept      = 150 // points of a chart
	most      = 20  // who look at the same time
	liveFor   = 30 * time.Minute
	lookFor   = 5 * time.Second // one look, however slow Redis is
)

// A viewer looks on behalf of all who look at the same time.
type viewer struct {
	p     *Page
	acted atomic.Bool // something was done here since the last look

	mu      sync.Mutex
	looking int
	count   int
	last    map[string]view // :: section → as it was seen last, its first page
	at      time.Time
	points  map[string][]float64 // :: line of a chart → its points, oldest first
}

// sections gives all that is to be shown. What others have just seen is not asked
// for again.
func (v *viewer) sections(ctx context.Context, pages map[string]string) []view {
	last := v.latest(ctx)
	var out []view
	for _, s := range sections {
		seen, there := last[s.id]
		if page := pages[s.id]; page != "" && s.paged {
			seen, there = v.p.look(ctx, s, page)
		}
		if there {
			out = append(out, seen)
		}
	}
	return out
}

// latest is what all see. What one of them wants besides is asked for when the others
// are let in again, since it may take long.
func (v *viewer) latest(ctx context.Context) map[string]view {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refresh(ctx)
	return maps.Clone(v.last)
}

// refresh is called with mu held. It looks for all who look, so it does not end when
// the one who came first has gone. After something was done here it looks at all, so
// that whoever did it finds no button for what is gone.
func (v *viewer) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
	defer cancel()
	now := v.p.o.Now()
	if v.last != nil && now.Sub(v.at) < v.p.o.Every*3/4 && !v.acted.Load() {
		return
	}
	if v.last == nil || now.Sub(v.at) > time.Minute { // a chart does not bridge a time when nobody looked
		v.last, v.points, v.count = map[string]view{}, map[string][]float64{}, 0
	}
	v.at = now
	acted := v.acted.Swap(false)
	for _, s := range sections {
		if _, seen := v.last[s.id]; s.slow && seen && v.count%slowEvery != 0 && !acted {
			continue
		}
		got, there := v.p.look(ctx, s, "")
		if !there {
			delete(v.last, s.id)
			continue
		}
		v.last[s.id] = v.charted(got)
	}
	v.count++
}

// charted adds the charts of a section.
func (v *viewer) charted(seen view) view {
	add := func(line string, n float64) []float64 {
		p := append(v.points[line], n)
		v.points[line] = p[max(0, len(p)-kept):]
		return v.points[line]
	}
	switch d := seen.Data.(type) {
	case []admin.Stream:
		for _, s := range d {
			name := s.Channel
			if s.Group != "" {
				name += " → " + s.Group
			}
			seen.Charts = append(seen.Charts, lineChart(name, "waiting", add(name, float64(s.Entries)), v.p.o.Every))
		}
	case admin.UsageView:
		if seen.ID == "usage" {
			seen.Charts = usageCharts(d)
			seen.Blocks = slices.DeleteFunc(slices.Clone(seen.Blocks), func(b admin.Block) bool { return strings.ContainsAny(b.Words, "▁█") }) // a chart in letters
		}
	case admin.Status:
		seen.Charts = []chart{barChart("Tasks by status", statuses, d.Tasks, itself), barChart("Partitions by node", slices.Sorted(maps.Keys(d.Holds)), d.Holds, inTurn)}
	}
	seen.Charts = slices.DeleteFunc(seen.Charts, func(c chart) bool { return c.Words == "" })
	return seen
}

// live sends each section again whenever it has changed, for as long as somebody
// looks.
func (v *viewer) live(w http.ResponseWriter, r *http.Request) {
	if !v.enter() {
		http.Error(w, fmt.Sprintf("%d look already; reload the page to see what is new", most), http.StatusServiceUnavailable)
		return
	}
	defer v.leave()
	c := http.NewResponseController(w)
	ctx, cancel := context.WithTimeout(r.Context(), liveFor)
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	sent := map[string][32]byte{}
	tick := time.NewTicker(v.p.o.Every)
	defer tick.Stop()
	for v.p.door.admits(r) { // until who looks has logged out, in another window
		for _, s := range v.sections(ctx, pages(r)) {
			var b bytes.Buffer
			if err := v.p.shown.ExecuteTemplate(&b, "section.html", of(s, v.p.door.formSecret(r))); err != nil {
				v.p.o.Logger.Error("page_not_rendered", "section", s.ID, "error", err)
				return
			}
			sum := sha256.Sum256(b.Bytes())
			if sent[s.ID] == sum {
				continue
			}
			sent[s.ID] = sum
			if send(w, "section", map[string]string{"id": s.ID, "html": b.String()}) != nil {
				return
			}
		}
		err := send(w, "at", map[string]string{"at": v.p.o.Now().UTC().Format("15:04:05 UTC")})
		if err == nil {
			err = c.SetWriteDeadline(time.Now().Add(10*v.p.o.Every + 30*time.Second))
		}
		if err == nil {
			err = c.Flush()
		}
		if err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (v *viewer) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.looking >= most {
		return false
	}
	v.looking++
	return true
}

func (v *viewer) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.looking--
}

func send(w http.ResponseWriter, event string, data map[string]string) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text)
	return err
}
