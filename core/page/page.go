// Package page is the operator's page: how the bot is doing, in a browser, and the
// few things that are done about it. It exists so that whoever runs a bot for a team
// sees at one glance what waits, what runs and what failed.
//
// It promises:
//
//   - It shows and does what the commands show and do ([mimikit/core/admin]), since
//     all of it is asked of them. So it says nothing that the other doors do not say,
//     and every act from it is audited.
//   - Nobody reads it or acts on it but who has the token or, where there is none, sits
//     at the machine. Another site that the operator visits can neither act (cookie,
//     origin and a secret of the form) nor read (no foreign host name is answered), nor
//     have it work for them. Whoever guesses at the token is slowed down, and keeps
//     nobody else out.
//   - What people and models wrote is shown as text, whatever it holds, and what is not
//     seen in it is made visible. No script or style runs but the page's own, from its
//     own files.
//   - It works without a script, with a keyboard and read aloud; the script only keeps
//     it up to date.
//   - It costs Redis nothing while nobody looks.
package page

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"mimikit/core/admin"
	"mimikit/core/chat"
)

// Commands are what the page asks; an *admin.Set is one.
type Commands interface {
	Run(ctx context.Context, c admin.Caller, words []string) (admin.Answer, error)
}

// Options of a Page. Commands is needed, and Token unless Local is true.
type Options struct {
	Commands Commands
	Name     string // of the bot; default Mimikit
	// Token opens the page. Without one it is open to whoever sits at the machine:
	// Local must say that nobody else reaches the address.
	Token  string
	Local  bool
	Every  time.Duration // how often it is brought up to date; default 2 s
	Now    func() time.Time
	Logger *slog.Logger // default: none
}

// A Page serves the page. It is safe for concurrent use.
type Page struct {
	o      Options
	door   *lock
	shown  *template.Template
	mux    *http.ServeMux
	viewer *viewer
}

//go:embed files
var files embed.FS

// New checks the options.
func New(o Options) (*Page, error) {
	switch {
	case o.Commands == nil:
		return nil, errors.New("new page: Commands must be set")
	case o.Token == "" && !o.Local:
		return nil, errors.New("new page: it wants a token, since others than this machine reach it")
	case o.Token != "" && len(o.Token) < minToken:
		return nil, fmt.Errorf("new page: the token has %d characters; want at least %d", len(o.Token), minToken)
	}
	o.Name = cmp.Or(o.Name, "Mimikit")
	o.Every = cmp.Or(o.Every, 2*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t, err := template.New("page").Funcs(template.FuncMap{
		"seen": visible, "of": of, "tabled": tabled, "spans": admin.Spans, "lines": linesOf,
	}).ParseFS(files, "files/*.html")
	if err != nil {
		return nil, fmt.Errorf("new page: %w", err)
	}
	p := &Page{o: o, door: newLock(o), shown: t, mux: http.NewServeMux()}
	p.viewer = &viewer{p: p}
	p.mux.HandleFunc("GET /{$}", p.door.guard(p.index))
	p.mux.HandleFunc("GET /show", p.door.guard(p.show))
	p.mux.HandleFunc("GET /sure", p.door.guard(p.sure))
	p.mux.HandleFunc("POST /do", p.door.guard(p.do))
	p.mux.HandleFunc("GET /live", p.door.guard(p.viewer.live))
	p.mux.HandleFunc("GET /login", p.login)
	p.mux.HandleFunc("POST /login", p.enter)
	p.mux.HandleFunc("POST /logout", p.door.guard(p.leave))
	p.mux.HandleFunc("GET /files/{name}", p.file)
	return p, nil
}

// of joins a view, or an act, with the secret that its forms bring back.
func of(view any, secret string) map[string]any {
	return map[string]any{"View": view, "Secret": secret}
}

// tabled joins a table with the view that it is in.
func tabled(t *admin.Table, v view, secret string) map[string]any {
	return map[string]any{"Grid": gridOf(t, len(v.Actions) > 0), "View": v, "Secret": secret}
}

// policy lets nothing run or load but what the page itself brings.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP serves the page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")        // for browsers that do not know frame-ancestors
	h.Set("Referrer-Policy", "same-origin") // with less, browsers do not say where a form comes from
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !p.door.knows(r) {
		http.Error(w, "this address is not served under that name", http.StatusMisdirectedRequest)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	p.mux.ServeHTTP(w, r)
}

// caller is who sits at the page: somebody who holds the machine.
func caller() admin.Caller {
	return admin.Caller{
		Author:       chat.Author{ID: "page", Name: "the operator's page", Role: chat.RoleAdmin},
		Conversation: chat.Conversation{Platform: "console", Workspace: "local", Place: "page"},
		Door:         "page", Private: true, Owner: true, PageSize: 25,
	}
}

func (p *Page) index(w http.ResponseWriter, r *http.Request) {
	p.render(w, r, http.StatusOK, "index.html", map[string]any{"Sections": p.viewer.sections(r.Context(), pages(r))})
}

// pages are those of the lists that the address asks for.
func pages(r *http.Request) map[string]string {
	out := map[string]string{}
	for _, s := range sections {
		if v := r.URL.Query().Get(s.id); v != "" && len(v) <= 20 {
			out[s.id] = v
		}
	}
	return out
}

// show shows what a command that changes nothing says.
func (p *Page) show(w http.ResponseWriter, r *http.Request) {
	words := strings.Fields(r.URL.Query().Get("words"))
	if len(words) == 0 || len(words) > reading[words[0]] {
		http.Error(w, "allowed here are: "+strings.Join(slices.Sorted(maps.Keys(reading)), ", "), http.StatusBadRequest)
		return
	}
	p.answer(w, r, words)
}

// reading are the commands that change nothing, and how many words they may have
// so that it stays so.
var reading = map[string]int{
	"task": 3, "tasks": 4, "trigger": 2, "triggers": 3, "usage": 3, "status": 1, "streams": 1, "dead": 1, "feedback": 4, "audit": 8, "why": 2, "help": 2,
	"questions": 3, "memory": 1,
}

// final are the commands about one thing that is gone afterwards. Only these are asked
// about, so that no link from elsewhere has somebody press a button for another.
var final = []string{"dead drop", "trigger remove"}

// sure asks once more before something is done that cannot be taken back.
func (p *Page) sure(w http.ResponseWriter, r *http.Request) {
	words := strings.Fields(r.URL.Query().Get("words"))
	if len(words) != 3 || !slices.Contains(final, words[0]+" "+words[1]) {
		http.Error(w, "allowed here are, with an id: "+strings.Join(final, ", "), http.StatusBadRequest)
		return
	}
	v := view{Title: "Are you sure?"}
	v.Blocks = []admin.Block{{Words: "This cannot be taken back."}}
	v.Buttons = append(v.Buttons, admin.Press("Yes, do it", "danger", words...))
	p.render(w, r, http.StatusOK, "answer.html", map[string]any{"Words": strings.Join(words, " "), "View": v})
}

// do carries out a command.
func (p *Page) do(w http.ResponseWriter, r *http.Request) {
	words := strings.Fields(r.PostFormValue("words"))
	if len(words) == 0 || len(words) > 50 {
		http.Error(w, "want a command of 1 to 50 words", http.StatusBadRequest)
		return
	}
	p.answer(w, r, words)
}

func (p *Page) answer(w http.ResponseWriter, r *http.Request, words []string) {
	a, err := p.o.Commands.Run(r.Context(), caller(), words)
	if r.Method == http.MethodPost {
		p.viewer.acted.Store(true) // before who did it can look
	}
	v := view{Title: strings.Join(words, " "), Answer: a, Actions: actionsOf(a)}
	if err != nil {
		v.Refused = admin.Say(err)
		var refusal *admin.Refusal
		if !errors.As(err, &refusal) {
			p.o.Logger.Error("page_command_failed", "command", words[0], "error", err)
		}
	}
	p.render(w, r, http.StatusOK, "answer.html", map[string]any{"Words": strings.Join(words, " "), "View": v})
}

// render writes a page. It is made whole first, so that an error is not half a page.
func (p *Page) render(w http.ResponseWriter, r *http.Request, status int, name string, data map[string]any) {
	data["Name"], data["Secret"], data["LoggedIn"] = p.o.Name, p.door.formSecret(r), p.o.Token != ""
	data["At"] = p.o.Now().UTC().Format("15:04:05 UTC")
	var b bytes.Buffer
	if err := p.shown.ExecuteTemplate(&b, name, data); err != nil {
		p.o.Logger.Error("page_not_rendered", "page", name, "error", err)
		http.Error(w, "the page could not be made; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // whoever asked has gone
}

var served = map[string]string{
	"style.css": "text/css; charset=utf-8", "live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
}

func (p *Page) file(w http.ResponseWriter, r *http.Request) {
	kind, ok := served[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	data, err := files.ReadFile("files/" + r.PathValue("name"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(data)
}
