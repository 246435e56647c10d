package discordfake

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bench is a server and a client without manners.
type bench struct {
	t      *testing.T
	s      *Server
	client *http.Client
	ann    User
	dm     string
}

func bubble(t *testing.T, test func(b *bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)))
		p := NewPipe()
		b := &bench{t: t, s: New(), client: p.Client()}
		b.s.Serve(p, "http://discord.test")
		defer b.s.Close()
		defer b.client.CloseIdleConnections()
		b.ann = b.s.NewUser("ann")
		b.dm = b.s.DirectChannel(b.ann)
		test(b)
	})
}

type answer struct {
	status int
	header http.Header
	body   map[string]any
	list   []map[string]any
}

func (b *bench) call(method, path, body string, change ...func(*http.Request)) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.s.URL()+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bot "+Token)
	r.Header.Set("User-Agent", "DiscordBot (https://example.com, 1)")
	r.Header.Set("Content-Type", "application/json")
	for _, f := range change {
		f(r)
	}
	resp, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header}
	if bytes.HasPrefix(data, []byte("[")) {
		err = json.Unmarshal(data, &a.list)
	} else if bytes.HasPrefix(data, []byte("{")) {
		err = json.Unmarshal(data, &a.body)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

func (b *bench) want(a answer, status int, code float64) {
	b.t.Helper()
	if got, _ := a.body["code"].(float64); a.status != status || got != code {
		b.t.Errorf("HTTP %d, %v; want %d and code %v", a.status, a.body, status, code)
	}
}

func TestNonces(t *testing.T) {
	bubble(t, func(b *bench) {
		path := "/channels/" + b.dm + "/messages"
		const body = `{"content":" hi ","nonce":"n1","enforce_nonce":true}`
		one, two := b.call("POST", path, body), b.call("POST", path, body)
		if one.body["id"] != two.body["id"] || one.body["nonce"] != "n1" || one.body["content"] != "hi" {
			t.Errorf("made %v and %v", one.body, two.body)
		}
		if got := b.call("GET", path+"?limit=5", ""); len(got.list) != 1 || got.list[0]["nonce"] != nil {
			t.Errorf("read again %v: a nonce is not kept", got.list)
		}
		b.s.Delete(one.body["id"].(string))
		b.want(b.call("POST", path, body), 404, 10008)
		time.Sleep(nonceKept)
		if later := b.call("POST", path, body); later.status != 200 || later.body["id"] == one.body["id"] {
			t.Errorf("after some minutes: %v", later.body)
		}
		b.want(b.call("POST", path, `{"content":"x","nonce":"`+strings.Repeat("n", 26)+`"}`), 400, 50035)
		b.want(b.call("POST", path, `{"content":"`+strings.Repeat("x", 2001)+`"}`), 400, 50035)
		b.want(b.call("POST", path, `{"content":"  "}`), 400, 50006)
		b.want(b.call("POST", path, `{`), 400, 50109)
	})
}

func TestRefusals(t *testing.T) {
	bubble(t, func(b *bench) {
		b.want(b.call("GET", "/users/@me", "", func(r *http.Request) { r.Header.Set("Authorization", "Bot x") }), 401, 0)
		b.want(b.call("GET", "/users/@me", "", func(r *http.Request) { r.Header.Set("User-Agent", "Go-http-client/1.1") }), 403, 40333)
		b.want(b.call("GET", "/channels/1", ""), 404, 10003)
		g := b.s.NewGuild("g", b.ann)
		c := b.s.NewChannel(g, "c", Text)
		b.s.Forbid(c, "view", 50001)
		b.want(b.call("GET", "/channels/"+c, ""), 403, 50001)
		b.s.Forbid(c, "view", 0)
		m := b.s.Say(c, b.ann, "hi")
		path := "/channels/" + c + "/messages/" + m.ID
		if made := b.call("POST", path+"/threads", `{"name":"t"}`); made.body["id"] != m.ID {
			t.Errorf("thread %v, want the id of its message", made.body)
		}
		b.want(b.call("POST", path+"/threads", `{"name":"t"}`), 400, 160004)
		b.s.SetThread(m.ID, true, true)
		b.want(b.call("POST", "/channels/"+m.ID+"/messages", `{"content":"x"}`), 403, 160005)
		b.want(b.call("PATCH", path, `{"content":"x"}`), 403, 50005)
	})
}

func TestLimits(t *testing.T) {
	bubble(t, func(b *bench) {
		path := "/channels/" + b.dm + "/messages"
		for i := range 5 {
			a := b.call("POST", path, `{"content":"x"}`)
			if left := a.header.Get("X-RateLimit-Remaining"); a.status != 200 || left != string(rune('4'-i)) {
				t.Errorf("request %d: HTTP %d, %s left", i, a.status, left)
			}
		}
		a := b.call("POST", path, `{"content":"x"}`)
		if after, _ := a.body["retry_after"].(float64); a.status != 429 || after <= 0 || after > 5 || a.header.Get("Retry-After") == "" {
			t.Errorf("HTTP %d, %v", a.status, a.body)
		}
		if len(b.s.Said(b.dm)) != 5 {
			t.Error("what was refused was done")
		}
		time.Sleep(5 * time.Second)
		if a := b.call("POST", path, `{"content":"x"}`); a.status != 200 {
			t.Errorf("HTTP %d after the window", a.status)
		}
		time.Sleep(time.Second)
		refused := false
		for range 60 {
			a := b.call("GET", "/users/@me", "")
			refused = refused || a.status == 429 && a.body["global"] == true
		}
		if !refused {
			t.Error("60 requests in a second, and none was refused")
		}
	})
}

func TestInteractionsEnd(t *testing.T) {
	bubble(t, func(b *bench) {
		callback := func(token string) answer {
			i := b.s.Interaction(token)
			return b.call("POST", "/interactions/"+i.ID+"/"+token+"/callback", `{"type":5}`)
		}
		token := b.s.Slash(b.dm, b.ann, "x")
		edit := "/webhooks/" + b.s.app + "/" + token + "/messages/@original"
		b.want(b.call("PATCH", edit, `{"content":"x"}`), 404, 10008)
		if a := callback(token); a.status != 204 {
			t.Errorf("HTTP %d", a.status)
		}
		b.want(callback(token), 400, 40060)
		if a := b.call("PATCH", edit, `{"content":"done"}`); a.status != 200 || b.s.Interaction(token).Content != "done" {
			t.Errorf("%+v", b.s.Interaction(token))
		}
		time.Sleep(15*time.Minute + time.Second)
		b.want(b.call("PATCH", edit, `{"content":"late"}`), 401, 50027)
		late := b.s.Slash(b.dm, b.ann, "x")
		time.Sleep(4 * time.Second)
		b.want(callback(late), 404, 10062)
	})
}

func TestTextIsHidden(t *testing.T) {
	bubble(t, func(b *bench) {
		b.s.AllowIntents(0)
		g := b.s.NewGuild("g", b.ann)
		c := b.s.NewChannel(g, "c", Text)
		b.s.Say(c, b.ann, "secret")
		b.s.Say(c, b.ann, "hello "+b.s.Mention())
		b.s.Say(b.dm, b.ann, "direct")
		got := b.call("GET", "/channels/"+c+"/messages", "").list
		if len(got) != 2 || got[0]["content"] == "" || got[1]["content"] != "" {
			t.Errorf("read %v", got)
		}
		if got := b.call("GET", "/channels/"+b.dm+"/messages", "").list; got[0]["content"] != "direct" {
			t.Errorf("read %v", got)
		}
	})
}

func TestPages(t *testing.T) {
	bubble(t, func(b *bench) {
		var ids []string
		for range 10 {
			ids = append(ids, b.s.Say(b.dm, b.ann, "x").ID)
		}
		for query, want := range map[string][]int{
			"limit=3": {9, 8, 7}, "limit=3&before=" + ids[5]: {4, 3, 2}, "limit=3&after=" + ids[5]: {8, 7, 6},
			"limit=3&around=" + ids[5]: {6, 5, 4}, "after=" + ids[9]: {}, "before=" + ids[0]: {},
		} {
			got := b.call("GET", "/channels/"+b.dm+"/messages?"+query, "").list
			ok := len(got) == len(want)
			for i := 0; ok && i < len(want); i++ {
				ok = got[i]["id"] == ids[want[i]]
			}
			if !ok {
				t.Errorf("%s gives %v, want %v", query, got, want)
			}
		}
		b.want(b.call("GET", "/channels/"+b.dm+"/messages?limit=101", ""), 400, 50035)
	})
}
