package question

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"mimikit/core/channel"
	"mimikit/core/chat"
	"mimikit/core/store"
	"mimikit/core/store/storetest"
	"mimikit/core/task"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	ann = chat.Author{ID: "U1", Name: "Ann", Role: chat.RoleUser}
	bob = chat.Author{ID: "U2", Name: "Bob", Role: chat.RoleAdmin}
)

func conv(place string) chat.Conversation {
	return chat.Conversation{Platform: "slack", Workspace: "T1", Place: place, Thread: "1.2"}
}

type rig struct {
	t    testing.TB
	s    *store.Store
	st   *Store
	q    *task.Queue
	keys channel.Keys
}

func newRig(t testing.TB, s *store.Store) *rig {
	t.Helper()
	r := &rig{t: t, s: s, keys: channel.Keys{Prefix: storetest.Prefix(t), Partitions: 2}}
	var err error
	if r.q, err = task.New(task.Options{Issuer: task.Issuer{Keys: r.keys}, Client: s.Client}); err != nil {
		t.Fatal(err)
	}
	r.st = r.store(s.Client)
	return r
}

func (r *rig) store(c redis.UniversalClient) *Store {
	r.t.Helper()
	st, err := New(Options{Issuer: Issuer{Tasks: r.q.Issuer()}, Client: c, CallTimeout: 5 * time.Second})
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

func deploy(place string) Draft {
	return Draft{Conversation: conv(place), Text: "Where to?", Options: []string{"staging", "production"}, Default: "staging", AskedTo: ann, TraceID: "trace"}
}

func (r *rig) ask(d Draft) Question {
	r.t.Helper()
	q, err := r.st.Ask(r.t.Context(), d)
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

func (r *rig) get(id string) Question {
	r.t.Helper()
	q, err := r.st.Get(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

// inputs are what the conversations were told, with the fields of the entries.
func (r *rig) inputs() (list []chat.UserInput, entries []redis.XMessage) {
	r.t.Helper()
	for p := range r.keys.Partitions {
		got, err := r.s.Client.XRange(r.t.Context(), r.keys.Stream(p, channel.UserInput), "-", "+").Result()
		if err != nil {
			r.t.Fatal(err)
		}
		for _, e := range got {
			var in chat.UserInput
			data, _ := e.Values["data"].(string)
			if err := json.Unmarshal([]byte(data), &in); err != nil {
				r.t.Fatalf("%q: %v", data, err)
			}
			list, entries = append(list, in), append(entries, e)
		}
	}
	return list, entries
}

func TestRead(t *testing.T) {
	t.Parallel()
	q := Question{Options: []string{"Staging", "production", "3 servers"}}
	for _, c := range []struct {
		text           string
		direct         bool
		answer, option string
		ok             bool
	}{
		{"1", false, "Staging", "Staging", true}, {" 2. ", false, "production", "production", true}, {"#1", false, "Staging", "Staging", true}, {"(2)", false, "production", "production", true},
		{"staging", false, "Staging", "Staging", true}, {"Production!", false, "production", "production", true}, {"3 SERVERS", false, "3 servers", "3 servers", true},
		{"4", false, "4", "", false}, {"0", false, "0", "", false}, {"staging please", false, "staging please", "", false},
		{"the new one", true, "the new one", "", true}, {"4", true, "4", "", true}, {"  ", true, "", "", false},
	} {
		answer, option, ok := q.Read(c.text, c.direct)
		if answer != c.answer || option != c.option || ok != c.ok {
			t.Errorf("%q, %v: %q, %q, %v", c.text, c.direct, answer, option, ok)
		}
	}
}

func TestWordsAndButtons(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.Mini(t))
	d := deploy("c")
	d.Timeout = 2 * time.Hour
	q, _, post, err := r.st.Issuer().Create(d)
	if err != nil {
		t.Fatal(err)
	}
	reply := post.Value.(*chat.Reply)
	until := "\n\nWithout an answer until " + q.Deadline.Format("2006-01-02 15:04 UTC") + " I take: staging"
	if got := q.Words(); got != "Where to?\n\n1. staging\n2. production"+until {
		t.Errorf("%q", got)
	}
	want := "Where to?" + until
	if post.To != channel.TellerReply || reply.Kind != chat.ReplyQuestion || reply.Question != q.ID || reply.Text != want || reply.Conversation != conv("c") {
		t.Errorf("%+v", reply)
	}
	if len(reply.Buttons) != 2 || reply.Buttons[0].Style != "primary" || reply.Buttons[1].Label != "production" {
		t.Errorf("%+v", reply.Buttons)
	}
	if id, n, ok := Pressed(reply.Buttons[1].Value); !ok || id != q.ID || n != 1 {
		t.Errorf("%s %d %v", id, n, ok)
	}
	for _, v := range []string{"", "admin:cancel x", "question:", "question:x", "question:x:y"} {
		if _, _, ok := Pressed(v); ok {
			t.Errorf("%q is a button", v)
		}
	}
	for want, change := range map[string]func(*Draft){
		"question: it has 0 bytes":        func(d *Draft) { d.Text = " " },
		"question: it has 4001 bytes":     func(d *Draft) { d.Text = strings.Repeat("x", 4001) },
		"there are 26; at most 25":        func(d *Draft) { d.Default, d.Options = "", strings.Split(strings.Repeat("x", 26), "") },
		`options[1]: "a"`:                 func(d *Draft) { d.Default, d.Options = "", []string{"a", "a"} },
		`"moon" is none of the options`:   func(d *Draft) { d.Default = "moon" },
		"at most 720h0m0s are allowed":    func(d *Draft) { d.Timeout = 31 * 24 * time.Hour },
		"it has no conversation":          func(d *Draft) { d.Conversation = chat.Conversation{} },
		`question id "t1": want q and 20`: func(d *Draft) { d.ID = "t1" },
		"lives in partition":              func(d *Draft) { d.ID = NewID(time.Now(), 1-r.keys.Partition(conv("c").Key()), 1) },
	} {
		d := deploy("c")
		change(&d)
		if _, _, _, err := r.st.Issuer().Create(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for range MaxOpen {
		r.ask(deploy("c"))
	}
	if _, err := r.st.Ask(t.Context(), deploy("c")); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
}
