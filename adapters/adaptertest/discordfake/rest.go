package discordfake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Limit is how many requests of a route are taken in a window, for each channel
// or other top-level resource.
type Limit struct {
	Requests int
	Window   time.Duration
}

type restState struct {
	limits  map[string]Limit // :: route → limit; "" is of all others
	windows map[string]*window
	global  *window
	faults  []*Fault
	calls   []Call
	invalid int
}

type window struct {
	left int
	ends time.Time
}

// A Call is one request that the REST API has had.
type Call struct {
	Route  string // as "POST /channels/{channel}/messages"
	Path   string
	Status int
	Body   []byte
	At     time.Time
}

// A Fault is what happens to requests instead of, or after, what they ask for.
type Fault struct {
	Route      string // whose requests; "" is all
	Times      int    // how often; 0 is always
	Status     int    // answer with it; 0 is none
	Code       int    // of the JSON error
	RetryAfter time.Duration
	Global     bool
	LoseReply  bool // do what was asked, then break the connection
	Break      bool // break the connection and do nothing
	Hang       bool // do nothing and never answer
	Body       string
}

func defaultLimits() map[string]Limit {
	return map[string]Limit{
		"POST /channels/{channel}/messages":                                   {5, 5 * time.Second},
		"PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me":    {1, 250 * time.Millisecond},
		"DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me": {1, 250 * time.Millisecond},
		"": {50, time.Second},
	}
}

// globalLimit is of all requests but those of interactions.
const globalLimit = 50

// SetLimit changes a route's limit; "" is of all routes that have none.
func (s *Server) SetLimit(route string, l Limit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest.limits[route] = l
	clear(s.rest.windows)
}

// Fail adds a fault. Those added first come first.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = math.MaxInt
	}
	s.rest.faults = append(s.rest.faults, &f)
}

// Heal takes all faults of the REST API away.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest.faults = nil
}

// Calls are the requests of a route so far; "" is of all.
func (s *Server) Calls(route string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.rest.calls {
		if route == "" || c.Route == route {
			out = append(out, c)
		}
	}
	return out
}

// A refusal is an answer that is an error.
type refusal struct {
	status, code int
	message      string
	retry        time.Duration
	global       bool
}

func (r *refusal) Error() string { return fmt.Sprintf("%d/%d %s", r.status, r.code, r.message) }

func refuse(status, code int, message string) error {
	return &refusal{status: status, code: code, message: message}
}

var (
	errUnauthorized   = &refusal{status: 401, message: "401: Unauthorized"}
	errUnknownChannel = &refusal{status: 404, code: 10003, message: "Unknown Channel"}
	errUnknownMessage = &refusal{status: 404, code: 10008, message: "Unknown Message"}
)

func badForm(what string) error { return refuse(400, 50035, "Invalid Form Body: "+what) }

// A request is what a route's function gets. s.mu is held while it runs.
type request struct {
	*http.Request
	body  []byte            // JSON, also of a form
	files map[string][]byte // :: field → content
	names map[string]string // :: field → file name
}

func (r request) decode(into any) error {
	if err := json.Unmarshal(r.body, into); err != nil {
		return refuse(400, 50109, "The request body contains invalid JSON.")
	}
	return nil
}

// nothing is the body of a 204.
type nothing struct{}

type routeFunc func(r request) (any, error)

// handle registers a route. Routes of interactions need no token and stand under
// no global limit.
func (s *Server) handle(mux *http.ServeMux, route string, f routeFunc) {
	method, path, _ := strings.Cut(route, " ")
	free := strings.HasPrefix(path, "/interactions/") || strings.HasPrefix(path, "/webhooks/")
	mux.HandleFunc(method+" /api/v10"+path, func(w http.ResponseWriter, hr *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, 25<<20))
		r := request{Request: hr, body: body}
		if err == nil {
			err = r.form()
		}
		s.mu.Lock()
		var out any
		fault := s.fault(route)
		switch {
		case err != nil:
			err = refuse(413, 40005, "Request entity too large")
		case fault != nil && fault.Hang:
			s.mu.Unlock()
			<-hr.Context().Done()
			return
		case fault != nil && fault.Break:
			s.mu.Unlock()
			panic(http.ErrAbortHandler)
		case fault != nil && fault.Status != 0:
			err = &refusal{status: fault.Status, code: fault.Code, message: fault.Body, retry: fault.RetryAfter, global: fault.Global}
		default:
			if err = s.admit(w, hr, route, free); err == nil {
				out, err = f(r)
			}
		}
		status := s.answer(w, out, err)
		s.rest.calls = append(s.rest.calls, Call{Route: route, Path: hr.URL.Path, Status: status.code, Body: body, At: time.Now()})
		s.note()
		s.mu.Unlock()
		if fault != nil && fault.LoseReply {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status.code)
		_, _ = w.Write(status.body)
	})
}

// fault takes the next fault of a route.
func (s *Server) fault(route string) *Fault {
	for _, f := range s.rest.faults {
		if f.Times > 0 && (f.Route == "" || f.Route == route) {
			f.Times--
			return f
		}
	}
	return nil
}

type answered struct {
	code int
	body []byte
}

func (s *Server) answer(w http.ResponseWriter, out any, err error) answered {
	if err == nil {
		if _, ok := out.(nothing); ok {
			return answered{code: http.StatusNoContent}
		}
		w.Header().Set("Content-Type", "application/json")
		body, err := json.Marshal(out)
		if err != nil {
			panic(err)
		}
		return answered{http.StatusOK, body}
	}
	r, ok := err.(*refusal) //nolint:errorlint // routes return it unwrapped
	if !ok {
		r = &refusal{status: 500, message: err.Error()}
	}
	if r.status == 401 || r.status == 403 || r.status == 429 {
		s.rest.invalid++
	}
	if r.status >= 500 {
		return answered{r.status, []byte("<html>upstream trouble</html>")}
	}
	w.Header().Set("Content-Type", "application/json")
	m := map[string]any{"message": r.message, "code": r.code}
	if r.status == 429 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(r.retry.Seconds()))))
		m["retry_after"], m["global"] = r.retry.Seconds(), r.global
		if r.global {
			w.Header().Set("X-RateLimit-Global", "true")
		}
	}
	body, jsonErr := json.Marshal(m)
	if jsonErr != nil {
		panic(jsonErr)
	}
	return answered{r.status, body}
}

// admit checks the token and the rate limits, and tells of them in headers.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, route string, free bool) error {
	if !free && r.Header.Get("Authorization") != "Bot "+Token {
		return errUnauthorized
	}
	if r.Header.Get("User-Agent") == "" || strings.HasPrefix(r.Header.Get("User-Agent"), "Go-http-client") {
		return refuse(403, 40333, "internal network error")
	}
	now := time.Now()
	if !free {
		if s.rest.global == nil || !now.Before(s.rest.global.ends) {
			s.rest.global = &window{left: globalLimit, ends: now.Add(time.Second)}
		}
		if s.rest.global.left--; s.rest.global.left < 0 {
			w.Header().Set("X-RateLimit-Scope", "global")
			return &refusal{status: 429, message: "You are being rate limited.", retry: s.rest.global.ends.Sub(now), global: true}
		}
	}
	limit, named := s.rest.limits[route]
	if !named {
		limit = s.rest.limits[""]
	}
	if limit.Requests == 0 {
		return nil
	}
	major := r.PathValue("channel") + r.PathValue("guild") + r.PathValue("token")
	key := route + "\x00" + major
	x := s.rest.windows[key]
	if x == nil || !now.Before(x.ends) {
		x = &window{left: limit.Requests, ends: now.Add(limit.Window)}
		s.rest.windows[key] = x
	}
	x.left--
	after := x.ends.Sub(now)
	h := w.Header()
	h.Set("X-RateLimit-Bucket", fmt.Sprintf("%x", bytes.Map(func(r rune) rune { return r & 15 }, []byte(route)))[:16])
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit.Requests))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(x.left, 0)))
	h.Set("X-RateLimit-Reset", fmt.Sprintf("%.3f", float64(x.ends.UnixMilli())/1000))
	h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", after.Seconds()))
	if x.left < 0 {
		h.Set("X-RateLimit-Scope", "user")
		return &refusal{status: 429, message: "You are being rate limited.", retry: after}
	}
	return nil
}
