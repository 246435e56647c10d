package slackfake

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// An envelope is something that the app must acknowledge.
type envelope struct {
	id      string
	n       int
	kind    string // events_api, slash_commands or interactive
	payload any
	takes   bool // the acknowledgement may carry an answer
	attempt int
	reason  string
	on      *socket
	timer   *time.Timer
	answer  string // id of the interaction
}

func (e *envelope) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// retries are the waits before an event is delivered again over HTTP.
var retries = []time.Duration{time.Second, time.Minute, 5 * time.Minute}

// event gives the event of a new message.
func (s *Server) event(ch *Channel, m *message) map[string]any {
	e := s.wire(ch, m, false)
	e["channel"], e["event_ts"] = ch.ID, m.ts
	e["channel_type"] = ch.Kind
	delete(e, "reply_count")
	return e
}

// emitChange tells of a change or a removal.
func (s *Server) emitChange(ch *Channel, subtype string, message, before map[string]any, ts string) {
	e := map[string]any{
		"type": "message", "subtype": subtype, "hidden": true, "channel": ch.ID, "channel_type": ch.Kind,
		"previous_message": before, "ts": s.stamp(),
	}
	e["event_ts"] = e["ts"]
	if subtype == "message_deleted" {
		e["deleted_ts"] = ts
	} else {
		e["message"] = message
	}
	s.emit(ch, "message", e)
}

// emit delivers an event of a place in which the bot is. It is called with mu
// held.
func (s *Server) emit(ch *Channel, kind string, event map[string]any) {
	if ch != nil && !ch.has(BotUser) {
		return
	}
	event["type"] = kind
	payload := s.callback(event)
	if ts, _ := event["ts"].(string); ts != "" && ch != nil {
		s.told[ch.ID+"/"+ts] = append(s.told[ch.ID+"/"+ts], payload)
	}
	s.post("events_api", payload, false, "")
}

// Redeliver delivers the events of a message once more, as Slack does when it
// believes that they were not acknowledged.
func (s *Server) Redeliver(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, payload := range s.told[channel+"/"+ts] {
		s.ids++
		s.retries++
		s.deliver(&envelope{id: "env-" + strconv.Itoa(s.ids), n: s.ids, kind: "events_api", payload: payload, attempt: 1, reason: "timeout"})
	}
	s.touch()
}

func (s *Server) callback(event map[string]any) map[string]any {
	return map[string]any{
		"token": "verification", "team_id": TeamID, "api_app_id": AppID, "type": "event_callback", "event": event,
		"event_id": s.id("Ev"), "event_time": s.o.Now().Unix(), "is_ext_shared_channel": false,
		"authorizations": []any{map[string]any{"team_id": TeamID, "user_id": BotUser, "is_bot": true}},
	}
}

// post sends something to the app. It is called with mu held.
func (s *Server) post(kind string, payload any, takes bool, interaction string) {
	s.ids++
	e := &envelope{id: "env-" + strconv.Itoa(s.ids), n: s.ids, kind: kind, payload: payload, takes: takes, answer: interaction}
	s.deliver(e)
	s.touch()
}

// deliver sends an envelope over one of the connections, another one each time.
func (s *Server) deliver(e *envelope) {
	if s.closed {
		return
	}
	if s.o.Target != "" {
		s.all.Go(func() { s.overHTTP(e) })
		return
	}
	var live []*socket
	for _, c := range s.sockets {
		c.mu.Lock()
		if !c.leaving {
			live = append(live, c)
		}
		c.mu.Unlock()
	}
	if len(live) == 0 {
		if !s.o.Forget {
			s.waiting = append(s.waiting, e)
		}
		return
	}
	e.on = live[e.n%len(live)]
	s.open[e.id] = e
	e.timer = time.AfterFunc(AckWithin, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[e.id] == e && !s.closed {
			s.again(e, "timeout")
		}
	})
	e.on.send(frame(map[string]any{
		"envelope_id": e.id, "type": e.kind, "payload": e.payload, "accepts_response_payload": e.takes,
		"retry_attempt": e.attempt, "retry_reason": e.reason,
	}))
}

// again delivers an envelope that was not acknowledged, under a new id.
func (s *Server) again(e *envelope, reason string) {
	e.stop()
	delete(s.open, e.id)
	if e.kind != "events_api" {
		return // the person is told that it failed
	}
	s.ids++
	s.retries++
	next := *e
	next.id, next.n, next.attempt, next.reason, next.on, next.timer = "env-"+strconv.Itoa(s.ids), s.ids, e.attempt+1, reason, nil, nil
	s.deliver(&next)
}

// inOrder lists what is open, oldest first.
func (s *Server) inOrder() []*envelope {
	var list []*envelope
	for _, e := range s.open {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *envelope) int { return a.n - b.n })
	return list
}

func (s *Server) acknowledged(id string, payload json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.open[id]
	if e == nil {
		return
	}
	e.stop()
	delete(s.open, id)
	s.acks++
	if len(payload) > 0 && e.answer != "" {
		s.answers = append(s.answers, Answer{Interaction: e.answer, Body: string(payload), WithAck: true})
	}
	s.touch()
}

// Acked tells how many deliveries were acknowledged, over HTTP those answered
// with 2xx.
func (s *Server) Acked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acks
}

// Unacked tells how many deliveries wait for an acknowledgement or a connection.
func (s *Server) Unacked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) + len(s.waiting)
}

// Retried tells how many deliveries were repeats.
func (s *Server) Retried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.retries
}

// overHTTP delivers to the target, and again while that does not answer 2xx in
// time.
func (s *Server) overHTTP(e *envelope) {
	s.mu.Lock()
	s.open[e.id] = e
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, e.id)
		s.touch()
	}()
	body, kind := e.body()
	reason := ""
	for n := 0; ; n++ {
		status, answered := s.request(body, kind, n, reason)
		if status >= 200 && status < 300 {
			s.mu.Lock()
			s.acks++
			if e.answer != "" && len(answered) > 0 {
				s.answers = append(s.answers, Answer{Interaction: e.answer, Body: string(answered), WithAck: true})
			}
			s.mu.Unlock()
			return
		}
		reason = "http_error"
		if status == 0 {
			reason = "http_timeout"
		}
		if e.kind != "events_api" || n >= len(retries) {
			return
		}
		t := time.NewTimer(retries[n])
		select {
		case <-t.C:
		case <-s.done:
			t.Stop()
			return
		}
		s.mu.Lock()
		s.retries++
		s.mu.Unlock()
	}
}

// body gives what is posted for an envelope: JSON for events, forms for the rest.
func (e *envelope) body() (body []byte, kind string) {
	data := frame(e.payload)
	switch e.kind {
	case "events_api":
		return data, "application/json"
	case "interactive":
		return []byte(url.Values{"payload": {string(data)}}.Encode()), "application/x-www-form-urlencoded"
	}
	form := url.Values{}
	for k, v := range e.payload.(map[string]any) {
		form.Set(k, v.(string))
	}
	return []byte(form.Encode()), "application/x-www-form-urlencoded"
}

// request makes one signed request; status 0 is that no answer came in time.
func (s *Server) request(body []byte, kind string, retry int, reason string) (status int, answer []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), AckWithin)
	defer cancel()
	go func() {
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.Target, bytes.NewReader(body))
	if err != nil {
		return 0, nil
	}
	req.Header = Signed(body, s.o.Now(), Secret)
	req.Header.Set("Content-Type", kind)
	if retry > 0 {
		req.Header.Set("X-Slack-Retry-Num", strconv.Itoa(retry))
		req.Header.Set("X-Slack-Retry-Reason", reason)
	}
	resp, err := s.o.Client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil
	}
	return resp.StatusCode, answer
}

// Signed gives the headers by which Slack proves that a body is its own.
func Signed(body []byte, at time.Time, secret string) http.Header {
	ts := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + ts + ":"))
	mac.Write(body)
	h := http.Header{}
	h.Set("X-Slack-Request-Timestamp", ts)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return h
}
