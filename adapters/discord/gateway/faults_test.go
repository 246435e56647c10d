package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFatalCodes(t *testing.T) {
	for code, word := range map[int]string{
		4004: "token", 4010: "shard", 4011: "shards", 4012: "release", 4013: "intents", 4014: "Message Content Intent",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.fake.RefuseIdentify(code)
				ended := make(chan error, 1)
				go func() { ended <- New(r.options()).Run(t.Context(), r.handle) }()
				err := <-ended
				var fatal *Fatal
				if !errors.As(err, &fatal) || fatal.Code != code || !strings.Contains(err.Error(), word) {
					t.Errorf("Run ended with %v, want a Fatal of %d that speaks of %q", err, code, word)
				}
				if s := r.fake.Stats(); s.Dials != 1 {
					t.Errorf("%d dials, want 1", s.Dials)
				}
			})
		})
	}
}

func TestMissingIntent(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.fake.AllowIntents(0)
		var fatal *Fatal
		if err := New(r.options()).Run(t.Context(), r.handle); !errors.As(err, &fatal) || fatal.Code != 4014 {
			t.Errorf("Run ended with %v, want 4014", err)
		}
	})
}

func TestOtherCodesAreRecovered(t *testing.T) {
	for code, again := range map[int]after{
		1000: resume, 1001: resume, 1011: resume, 4000: resume, 4001: resume, 4002: resume, 4005: resume, 4008: resume, 4999: resume,
		4003: identify, 4007: identify, 4009: identify,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				stop := r.start()
				r.connected()
				r.fake.CloseConnections(code)
				r.await("the end", func() bool { return r.fake.Stats().Connected == 0 })
				missed := r.say(1)
				r.await("a second connection", func() bool { return r.fake.Stats().Connected == 1 })
				fresh := r.say(1)
				r.await("messages", func() bool { return slices.Contains(r.has(), fresh[0]) })
				r.stopped(stop)
				s := r.fake.Stats()
				switch again {
				case resume:
					if s.Resumes != 1 || len(s.Identifies) != 1 || !slices.Contains(r.has(), missed[0]) {
						t.Errorf("%d resumes, %d identifies, stored %v; want one resume and the missed message", s.Resumes, len(s.Identifies), r.has())
					}
				case identify:
					if s.Resumes != 0 || len(s.Identifies) != 2 || len(r.lost) != 2 {
						t.Errorf("%d resumes, %d identifies, %d told; want a new session that tells of the gap", s.Resumes, len(s.Identifies), len(r.lost))
					}
				}
			})
		})
	}
}

func TestDeadLines(t *testing.T) {
	for name, fault := range map[string]struct{ harm, mend func(r *rig) }{
		"zombie":      {func(r *rig) { r.fake.WithholdAcks(true) }, func(r *rig) { r.fake.WithholdAcks(false) }},
		"silent":      {func(r *rig) { r.fake.Mute(true) }, func(r *rig) { r.fake.Mute(false) }},
		"op 7 first":  {func(r *rig) { r.fake.AskReconnectFirst(3); r.fake.DropConnections() }, func(*rig) {}},
		"no answer":   {func(r *rig) { r.fake.IgnoreHello(1); r.fake.DropConnections() }, func(*rig) {}},
		"not resumed": {func(r *rig) { r.fake.InvalidateSessions(false) }, func(*rig) {}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				stop := r.start()
				r.connected()
				dials := r.fake.Stats().Dials
				fault.harm(r)
				r.await("a new attempt", func() bool { return r.fake.Stats().Dials > dials })
				fault.mend(r)
				r.await("a new session", func() bool {
					s := r.fake.Stats()
					return s.Connected == 1 && s.Dials > dials
				})
				want := r.say(1)
				r.await("a message", func() bool { return slices.Contains(r.has(), want[0]) })
				r.stopped(stop)
				if name == "zombie" && !r.saw("zombie") {
					t.Errorf("observed %v, want a zombie", r.observed)
				}
			})
		})
	}
}

// A zombie is found within two heartbeats, and a gateway that never says hello
// within its time.
func TestDeadLinesAreFoundInTime(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		stop := r.start()
		r.connected()
		r.fake.WithholdAcks(true)
		from := time.Now()
		r.await("a new attempt", func() bool { return r.fake.Stats().Dials == 2 })
		if took := time.Since(from); took > 100*time.Second {
			t.Errorf("found dead after %v", took)
		}
		r.stopped(stop)
	})
	t.Run("no hello", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.fake.Mute(true)
			stop := r.start()
			from := time.Now()
			r.await("a second attempt", func() bool { return r.fake.Stats().Dials == 2 })
			if took := time.Since(from); took > 30*time.Second {
				t.Errorf("given up after %v", took)
			}
			r.stopped(stop)
		})
	})
}

// A frame that cannot be read comes again with each resume, so the session is
// given up in the end, and the gap is told.
func TestNonsenseIsLeft(t *testing.T) {
	for _, raw := range []string{"{", "null", `"x"`, "[1]", `{"op":"x"}`, `{"op":0,"s":-5,"t":"X"}`, `{"op":99}`, `{"op":0,"t":"READY","d":7}`, "\x00\xff"} {
		t.Run(raw, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				stop := r.start()
				r.connected()
				for range 5 {
					r.fake.SendRaw([]byte(raw))
					time.Sleep(10 * time.Second)
				}
				r.await("a session", func() bool { return r.fake.Stats().Connected == 1 })
				want := r.say(1)
				r.await("a message", func() bool { return slices.Contains(r.has(), want[0]) })
				r.stopped(stop)
			})
		})
	}
}

// Discord wants one to five seconds between an invalid session and what comes next.
func TestInvalidSessionsAreWaitedFor(t *testing.T) {
	for _, resumable := range []bool{true, false} {
		t.Run(fmt.Sprint("resumable=", resumable), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				stop := r.start()
				r.connected()
				time.Sleep(time.Minute) // so that the attempt is a first one
				from := time.Now()
				r.fake.InvalidateSessions(resumable)
				r.await("a second attempt", func() bool { return r.fake.Stats().Dials == 2 })
				if took := time.Since(from); took < time.Second || took > 6*time.Second {
					t.Errorf("tried again after %v", took)
				}
				r.stopped(stop)
			})
		})
	}
}
