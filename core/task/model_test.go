package task

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"mimikit/core/channel"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
)

// A modelTask is a task as a few lines of Go would have it.
type modelTask struct {
	id, title, place, parent string
	status                   Status
	attempts, retried, lapse int
	canceled                 bool // somebody has asked for it
	run                      *Run
	question                 string
	results                  int
}

// A model is what the queue should be, and does to both what happens.
type model struct {
	*rig
	rand  *rand.Rand
	tasks map[string]*modelTask
	order []string
	c     *claimer
	stale []*Run // runs that are over
	cap   int
	log   []string
}

func (m *model) say(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) pick(ok func(*modelTask) bool) *modelTask {
	var list []string
	for _, id := range m.order {
		if ok(m.tasks[id]) {
			list = append(list, id)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return m.tasks[list[m.rand.IntN(len(list))]]
}

func is(s ...Status) func(*modelTask) bool {
	return func(x *modelTask) bool { return slices.Contains(s, x.status) }
}

func (m *model) create() {
	d := draft(fmt.Sprintf("c%d", m.rand.IntN(3)), fmt.Sprintf("task %d", m.rand.IntN(12)))
	d.Priority = new(m.rand.IntN(11))
	d.Retry = &Retry{MaxAttempts: 1, Backoff: time.Hour}
	if m.rand.IntN(4) == 0 {
		d.Profile = Expert
	}
	if m.rand.IntN(5) == 0 {
		d.DeferUntil = epoch.AddDate(5, 0, 0)
	}
	if p := m.pick(func(x *modelTask) bool { return x.place == d.Conversation.Place }); p != nil && m.rand.IntN(3) == 0 {
		d.ParentTaskID = p.id
	}
	same := m.pick(func(x *modelTask) bool {
		return x.place == d.Conversation.Place && x.title == d.Title+d.Profile && !Over(x.status) && !x.canceled
	})
	id, created, err := m.q.Enqueue(m.t.Context(), d)
	m.say("create %s %q in %s: %v", id, d.Title, d.Conversation.Place, created)
	switch {
	case err != nil:
		m.t.Fatal(err)
	case same != nil && (created || id != same.id):
		m.fail("made %s, but %s stands for it", id, same.id)
	case same == nil && !created:
		m.fail("%s stands for it, and should not", id)
	case !created:
		return
	}
	x := &modelTask{id: id, title: d.Title + d.Profile, place: d.Conversation.Place, parent: d.ParentTaskID, status: Pending}
	if !d.DeferUntil.IsZero() {
		x.status = Deferred
	}
	m.tasks[id] = x
	m.order = append(m.order, id)
	if p := m.tasks[d.ParentTaskID]; p != nil && p.canceled {
		m.cancelOf(x)
	}
}

func (m *model) cancelOf(x *modelTask) {
	if x.canceled {
		return
	}
	x.canceled = true
	if is(Deferred, Pending, Waiting)(x) {
		x.status = Canceled
		x.results++
	}
	for _, id := range m.order {
		if m.tasks[id].parent == x.id {
			m.cancelOf(m.tasks[id])
		}
	}
}

func (m *model) cancel() {
	x := m.pick(func(*modelTask) bool { return true })
	if x == nil {
		return
	}
	want := DidEnd
	switch {
	case Over(x.status):
		want = DidOver
	case x.status == Running && x.canceled:
		want = DidAgain
	case x.status == Running:
		want = DidFlag
	}
	got, err := m.q.Cancel(m.t.Context(), x.id, bob, "x")
	m.say("cancel %s: %s", x.id, got.Did)
	if err != nil {
		m.t.Fatal(err)
	}
	if got.Did != want {
		m.fail("cancel did %s, want %s", got.Did, want)
	}
	m.cancelOf(x)
}

func (m *model) running(place string) (n int) {
	for _, x := range m.tasks {
		if x.status == Running && x.place == place {
			n++
		}
	}
	return n
}

func (m *model) take() {
	run := m.claim(m.c, 0)
	free := m.pick(func(x *modelTask) bool { return x.status == Pending && m.running(x.place) < m.cap })
	if run == nil {
		m.say("claim nothing")
		if free != nil {
			m.fail("nothing was claimed, but %s waits", free.id)
		}
		return
	}
	x := m.tasks[run.Task.ID]
	m.say("claim %s", x.id)
	if x.status != Pending || m.running(x.place) >= m.cap {
		m.fail("claimed %s, which is %s, with %d running beside it", x.id, x.status, m.running(x.place))
	}
	x.status, x.run, x.attempts = Running, run, max(x.attempts, 1)
}

func (m *model) end() {
	x := m.pick(is(Running))
	if x == nil {
		return
	}
	how := how([]string{"succeed", "fail", "final", "back", "lapse", "ask"}[m.rand.IntN(6)], "asked", "q"+x.id, "question", `{"id":"q`+x.id+`"}`)
	if how.how != "ask" {
		clear(how.said)
	}
	to := Pending
	switch how.how {
	case "succeed":
		to = Succeeded
	case "final":
		to = Failed
	case "ask":
		to, x.question = Waiting, "q"+x.id
	case "fail":
		if to = Failed; x.retried == 0 {
			to = Deferred
		}
	case "lapse":
		if x.lapse++; x.lapse == 3 {
			to = Failed
		}
	}
	if x.canceled {
		to = Canceled
	}
	if to == Deferred {
		x.retried++
		x.attempts++
	}
	if how.how == "lapse" && to == Pending {
		x.attempts++
	}
	got, err := x.run.settle(m.t.Context(), how)
	m.say("%s %s: %s", how.how, x.id, got)
	if err != nil {
		m.t.Fatal(err)
	}
	if got != to {
		m.fail("%s of %s: %s, want %s", how.how, x.id, got, to)
	}
	m.stale = append(m.stale, x.run)
	x.run, x.status = nil, to
	if Over(to) {
		x.results++
	}
}

// ghost lets a run that is over go on.
func (m *model) ghost() {
	if len(m.stale) == 0 {
		return
	}
	run := m.stale[m.rand.IntN(len(m.stale))]
	m.say("ghost %s of %s", run.token, run.Task.ID)
	if err := run.Report(m.t.Context(), Event{Kind: "ghost"}); !errors.Is(err, ErrLapsed) {
		m.fail("a run that is over reports: %v", err)
	}
	_, _ = run.settle(m.t.Context(), how("succeed")) // answered like the first time, or refused
}

func (m *model) answer() {
	if x := m.pick(is(Waiting)); x != nil {
		m.say("answer %s", x.id)
		if err := m.q.Answer(m.t.Context(), conv(x.place), x.id, x.question, "a", ann); err != nil {
			m.fail("answer: %v", err)
		}
		x.status = Pending
	}
}

func (m *model) due() {
	x := m.pick(is(Deferred))
	if x == nil {
		return
	}
	m.say("due %s", x.id)
	m.s.Client.ZAdd(m.t.Context(), m.q.keys.In(0, "t:deferred"), z(0, x.id))
	if _, err := m.q.look(m.t.Context(), 0, looker{}, allClasses); err != nil {
		m.t.Fatal(err)
	}
	x.status = Pending
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nafter\n%s", fmt.Sprintf(format, args...), strings.Join(m.log, "\n"))
}

// check holds Redis against the model.
func (m *model) check() {
	m.t.Helper()
	ctx := m.t.Context()
	in := func(name string) string { return m.q.keys.In(0, "t:"+name) }
	got, err := m.q.get(ctx, m.order)
	if err != nil || len(got) != len(m.order) {
		m.fail("read %d of %d tasks: %v", len(got), len(m.order), err)
	}
	count, load, want := map[Status]int{}, map[string]string{}, map[string]bool{}
	var wait []string
	for _, g := range got {
		x := m.tasks[g.ID]
		if g.Status != x.status || g.Attempts != x.attempts || g.Retries != x.retried || g.Lapses != x.lapse || g.CancelRequestedAt.IsZero() == x.canceled {
			m.fail("%s is %s, %d attempts, %d retries, %d lapses, canceled at %s; want %+v", g.ID, g.Status, g.Attempts, g.Retries, g.Lapses, g.CancelRequestedAt, x)
		}
		count[g.Status]++
		switch g.Status {
		case Running:
			load[conv(x.place).Key()] = fmt.Sprint(m.running(x.place))
		case Pending:
			want[class(g.Profile, "")+" "+conv(x.place).Key()] = true
			wait = append(wait, g.ID)
		}
	}
	stats, err := m.q.Stats(ctx)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, s := range Statuses {
		if stats.ByStatus[s] != count[s] {
			m.fail("the index counts %d %s, want %d", stats.ByStatus[s], s, count[s])
		}
	}
	var queued []string
	for _, spot := range m.s.Client.ZRange(ctx, in("queue"), 0, -1).Val() {
		queued = append(queued, spot[strings.LastIndexByte(spot, ' ')+1:])
	}
	lines := m.s.Client.HGetAll(ctx, in("order")).Val()
	for g, line := range lines {
		if strings.Contains(g, " ") {
			queued = append(queued, line[strings.LastIndexByte(line, ' ')+1:])
			delete(lines, g)
		}
	}
	slices.Sort(queued)
	if slices.Sort(wait); !slices.Equal(queued, wait) {
		m.fail("queued are %v, want %v", queued, wait)
	}
	heads := map[string]bool{}
	for _, e := range m.s.Client.ZRange(ctx, in("ready"), 0, -1).Val() {
		f := strings.Fields(e)
		heads[f[0]+" "+f[2]] = true
	}
	for _, e := range m.s.Client.ZRange(ctx, in("parked"), 0, -1).Val() {
		f := strings.Fields(e)
		heads[f[1]+" "+f[0]] = true
	}
	if !maps.Equal(heads, want) {
		m.fail("heads of %v, want %v", heads, want)
	}
	// Besides the heads there are seq and the digests of what is open.
	open := count[Pending] + count[Running] + count[Deferred] + count[Waiting]
	if len(lines) > open+1 {
		m.fail("%d digests of %d open tasks: %v", len(lines)-1, open, lines)
	}
	if got := m.s.Client.HGetAll(ctx, in("load")).Val(); !maps.Equal(got, load) {
		m.fail("the load is %v, want %v", got, load)
	}
	if got := int(m.s.Client.HLen(ctx, in("runs")).Val()); got != count[Running] {
		m.fail("%d runs, want %d", got, count[Running])
	}
	if got := int(m.s.Client.ZCard(ctx, in("deferred")).Val()); got != count[Deferred] {
		m.fail("%d deferred, want %d", got, count[Deferred])
	}
	if got := int(m.s.Client.ZCard(ctx, in("ended")).Val()); got != count[Succeeded]+count[Failed]+count[Canceled] {
		m.fail("%d ended, want %v", got, count)
	}
}

// Whatever happens in whatever order, Redis is what a simple model says, and each
// end has one result.
func TestModel(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		t.Parallel()
		seeds, steps := uint64(25), 120
		if s.Volatile() {
			seeds, steps = 4, 60
		}
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				m := &model{rand: rand.New(rand.NewPCG(seed, 7)), tasks: map[string]*modelTask{}, cap: 2}
				m.rig = newRig(t, s, one, func(o *Options) { o.MaxPerConversation = m.cap })
				m.c = newClaimer(m.q, "n")
				for i := range steps {
					switch n := m.rand.IntN(100); {
					case n < 25:
						m.create()
					case n < 50:
						m.take()
					case n < 75:
						m.end()
					case n < 82:
						m.cancel()
					case n < 88:
						m.ghost()
					case n < 94:
						m.answer()
					default:
						m.due()
					}
					if i%5 == 0 {
						m.check()
					}
				}
				// In the end everything ends.
				for range 10 * steps {
					if m.pick(func(x *modelTask) bool { return !Over(x.status) }) == nil {
						break
					}
					m.due()
					m.answer()
					m.take()
					m.end()
				}
				m.check()
				told := m.told(channel.WorkerResult)
				for _, x := range m.tasks {
					if !Over(x.status) || len(told[x.id]) != 1 || told[x.id][0].Status != x.status || x.results != 1 {
						m.fail("%s is %s and has the results %+v", x.id, x.status, told[x.id])
					}
				}
				if err := m.q.Cascade(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				m.checkClean()
			})
		}
	})
}
