package slackfake

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// A Fault is something that goes wrong with calls of one method.
type Fault struct {
	Method string // of the Web API; "upload" and "response_url" too
	Times  int    // how often; 0 is once
	After  int    // calls that go well before

	Error      string        // answered as ok:false
	Status     int           // of HTTP
	RetryAfter int           // seconds, with status 429
	LoseAnswer bool          // it is done, and then the connection breaks
	LoseCall   bool          // the connection breaks before it is done
	Hang       bool          // neither done nor answered, until the client gives up
	Delay      time.Duration // before it is done
}

// Inject makes calls go wrong.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Times = max(f.Times, 1)
	s.faults = append(s.faults, &f)
}

// Limit makes a method answer 429 beyond so many calls in a minute; 0 ends that.
func (s *Server) Limit(method string, perMinute int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits[method] = perMinute
}

// Calls tells how often a method was called, refusals included.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made[method]
}

// fault gives what goes wrong with a call that is about to be made.
func (s *Server) fault(method string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made[method]++
	s.touch()
	for _, f := range s.faults {
		if f.Method != method || f.Times == 0 {
			continue
		}
		if f.After > 0 {
			f.After--
			continue
		}
		f.Times--
		return f
	}
	if most := s.limits[method]; most > 0 {
		return s.within(method, most, time.Minute)
	}
	if s.o.Tiers {
		if most := tiers[method]; most > 0 {
			return s.within(method, most, time.Minute)
		}
	}
	return nil
}

// before does what a fault does before the call; it reports whether the call goes on.
func (s *Server) before(w http.ResponseWriter, r *http.Request, f *Fault) bool {
	if f.Hang {
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		hangUp(w)
		return false
	}
	if f.LoseCall {
		hangUp(w)
		return false
	}
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.done:
		}
	}
	if f.Status != 0 {
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, "<html>not today</html>")
		return false
	}
	return true
}

// hangUp breaks the connection without an answer.
func hangUp(w http.ResponseWriter) {
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close()
		}
	}
}
