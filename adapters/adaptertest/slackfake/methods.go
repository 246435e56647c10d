package slackfake

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (s *Server) authTest(call) (answer, *refused) {
	return answer{"url": "https://fake.slack.com/", "team": "Fake", "user": "mimikit", "team_id": TeamID, "user_id": BotUser, "bot_id": BotID}, nil
}

func (s *Server) connectionsOpen(call) (answer, *refused) {
	t := s.id("ticket")
	s.tickets[t] = true
	return answer{"url": "ws" + strings.TrimPrefix(s.base, "http") + "/link?ticket=" + t + "&app_id=" + AppID}, nil
}

func (s *Server) userInfo(c call) (answer, *refused) {
	u := s.users[c.get("user")]
	if u == nil {
		return nil, no("user_not_found")
	}
	return answer{"user": map[string]any{
		"id": u.ID, "team_id": u.Team, "name": strings.ToLower(u.Name), "real_name": u.Name, "is_admin": u.Admin, "is_bot": u.Bot,
		"is_stranger": u.Team != TeamID, "profile": map[string]any{"display_name": u.Name, "real_name": u.Name},
	}}, nil
}

func (s *Server) conversationInfo(c call) (answer, *refused) {
	ch := s.channels[c.get("channel")]
	if ch == nil || ch.Kind != "channel" && !ch.has(BotUser) {
		return nil, no("channel_not_found")
	}
	return answer{"channel": map[string]any{
		"id": ch.ID, "name": ch.Name, "is_im": ch.Kind == "im", "is_mpim": ch.Kind == "mpim", "is_channel": ch.Kind == "channel",
		"is_group": ch.Kind == "group", "is_member": ch.has(BotUser), "is_archived": ch.Archived,
	}}, nil
}

// selected gives the messages of a list within the bounds of a call.
func selected(list []*message, c call) []*message {
	oldest, latest, inclusive := c.get("oldest"), c.get("latest"), c.get("inclusive")
	var out []*message
	for _, m := range list {
		if oldest != "" && (m.ts < oldest || m.ts == oldest && !truth(inclusive)) {
			continue
		}
		if latest != "" && (m.ts > latest || m.ts == latest && !truth(inclusive)) {
			continue
		}
		out = append(out, m)
	}
	return out
}

func truth(s string) bool { return s == "true" || s == "1" }

// paged gives one page, and the cursor of the next.
func (s *Server) paged(ch *Channel, list []*message, c call, first []*message) answer {
	limit, err := strconv.Atoi(c.get("limit"))
	if err != nil || limit <= 0 {
		limit = 100
	}
	limit = min(limit, 999)
	from, _ := strconv.Atoi(strings.TrimPrefix(c.get("cursor"), "page:")) // "" is the first
	page := []any{}
	if from == 0 {
		for _, m := range first {
			page = append(page, s.wire(ch, m, truth(c.get("include_all_metadata"))))
		}
	}
	to := min(from+limit, len(list))
	for _, m := range list[min(from, len(list)):to] {
		page = append(page, s.wire(ch, m, truth(c.get("include_all_metadata"))))
	}
	a := answer{"messages": page, "has_more": to < len(list), "response_metadata": map[string]any{"next_cursor": ""}}
	if to < len(list) {
		a["response_metadata"] = map[string]any{"next_cursor": "page:" + strconv.Itoa(to)}
	}
	return a
}

func (s *Server) history(c call) (answer, *refused) {
	ch, ref := s.place(c, "channel")
	if ref != nil {
		return nil, ref
	}
	var list []*message
	for _, m := range ch.messages {
		if m.thread == "" || m.thread == m.ts || m.subtype == "thread_broadcast" {
			list = append(list, m)
		}
	}
	list = selected(list, c)
	slices.Reverse(list)
	return s.paged(ch, list, c, nil), nil
}

func (s *Server) threadReplies(c call) (answer, *refused) {
	ch, ref := s.place(c, "channel")
	if ref != nil {
		return nil, ref
	}
	root := ch.find(c.get("ts"))
	if root == nil {
		return nil, no("thread_not_found")
	}
	return s.paged(ch, selected(ch.replies(root.ts), c), c, []*message{root}), nil
}

func (s *Server) reacted(c call) (*message, *refused) {
	ch, ref := s.place(c, "channel")
	if ref != nil {
		return nil, ref
	}
	m := ch.find(c.get("timestamp"))
	if m == nil || m.gone {
		return nil, no("message_not_found")
	}
	return m, nil
}

func (s *Server) reactionAdd(c call) (answer, *refused) {
	m, ref := s.reacted(c)
	if ref != nil {
		return nil, ref
	}
	name := c.get("name")
	if slices.Contains(m.reactions[name], BotUser) {
		return nil, no("already_reacted")
	}
	if m.reactions == nil {
		m.reactions = map[string][]string{}
	}
	m.reactions[name] = append(m.reactions[name], BotUser)
	return answer{}, nil
}

func (s *Server) reactionRemove(c call) (answer, *refused) {
	m, ref := s.reacted(c)
	if ref != nil {
		return nil, ref
	}
	if !slices.Contains(m.reactions[c.get("name")], BotUser) {
		return nil, no("no_reaction")
	}
	delete(m.reactions, c.get("name"))
	return answer{}, nil
}

func (s *Server) setStatus(c call) (answer, *refused) {
	ch, ref := s.place(c, "channel_id")
	switch {
	case s.o.NotAgent:
		return nil, no("not_authorized")
	case ref != nil:
		return nil, ref
	case c.get("thread_ts") == "":
		return nil, no("invalid_arguments")
	}
	key := ch.ID + "/" + c.get("thread_ts")
	s.statuses[key], s.statusAt[key] = append(s.statuses[key], c.get("status")), s.o.Now()
	return answer{}, nil
}

func (s *Server) setSession(c call) (answer, *refused) {
	status := c.get("status")
	switch {
	case s.o.NotAgent:
		return nil, no("not_authorized")
	case !slices.Contains([]string{"active", "processing", "suspended", "closed"}, status):
		return nil, no("invalid_arguments")
	}
	key := c.get("channel_id") + "/" + c.get("thread_ts")
	s.sessions[key] = append(s.sessions[key], status)
	return answer{"status": status, "agent_status": status}, nil
}

func (s *Server) publish(c call) (answer, *refused) {
	var v struct {
		Type   string           `json:"type"`
		Blocks []map[string]any `json:"blocks"`
	}
	raw := c.get("view")
	if json.Unmarshal([]byte(raw), &v) != nil || v.Type != "home" || len(v.Blocks) > 100 {
		return nil, no("invalid_arguments")
	}
	for _, b := range v.Blocks {
		if b["type"] == "markdown" { // in messages only
			return nil, no("invalid_blocks")
		}
		if b["type"] == "actions" && !goodActions(b) {
			return nil, no("invalid_blocks")
		}
	}
	if s.users[c.get("user_id")] == nil {
		return nil, no("user_not_found")
	}
	s.homes[c.get("user_id")] = json.RawMessage(raw)
	return answer{"view": map[string]any{"id": s.id("V"), "type": "home"}}, nil
}

func (s *Server) uploadURL(c call) (answer, *refused) {
	n, err := strconv.Atoi(c.get("length"))
	if err != nil || n <= 0 || c.get("filename") == "" {
		return nil, no("invalid_arguments")
	}
	f := &File{ID: s.id("F"), Name: c.get("filename"), Type: "text/markdown", User: BotUser}
	s.files[f.ID] = f
	return answer{"upload_url": s.base + "/upload/" + f.ID, "file_id": f.ID}, nil
}

// serveUpload takes the bytes of a file.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	f := s.fault("upload")
	if f != nil && !s.before(w, r, f) {
		return
	}
	var data []byte
	if part, _, err := r.FormFile("file"); err == nil {
		data, _ = io.ReadAll(part) // what breaks off is short, and seen by the test
	} else {
		data, _ = io.ReadAll(r.Body)
	}
	s.mu.Lock()
	file := s.files[strings.TrimPrefix(r.URL.Path, "/upload/")]
	if file != nil {
		file.Content = data
	}
	s.mu.Unlock()
	if file == nil {
		http.NotFound(w, r)
		return
	}
	_, _ = io.WriteString(w, "OK")
}

func (s *Server) completeUpload(c call) (answer, *refused) {
	var list []struct{ ID, Title string }
	if json.Unmarshal([]byte(c.get("files")), &list) != nil || len(list) == 0 {
		return nil, no("invalid_arguments")
	}
	ch, ref := s.place(c, "channel_id")
	if ref != nil {
		return nil, ref
	}
	m := &message{ts: s.stamp(), thread: c.get("thread_ts"), user: BotUser, botID: BotID, subtype: "file_share", text: c.get("initial_comment")}
	var out []any
	for _, x := range list {
		f := s.files[x.ID]
		if f == nil || len(f.Content) == 0 {
			return nil, no("file_not_found")
		}
		f.shared = true
		m.files = append(m.files, f.ID)
		out = append(out, map[string]any{"id": f.ID, "title": x.Title})
	}
	ch.messages = append(ch.messages, m)
	s.clearStatus(ch, m.thread)
	s.emit(ch, "message", s.event(ch, m))
	return answer{"files": out}, nil
}

func (s *Server) fileInfo(c call) (answer, *refused) {
	f := s.files[c.get("file")]
	if f == nil {
		return nil, no("file_not_found")
	}
	whole := *f
	whole.External = false
	return answer{"file": s.wireFile(&whole)}, nil
}

// serveFile gives a file to the bot's token, and the sign-in page to all others.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f := s.files[strings.TrimPrefix(r.URL.Path, "/files/")]
	s.mu.Unlock()
	if f == nil {
		http.NotFound(w, r)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+BotToken {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html><body>Sign in</body></html>")
		return
	}
	w.Header().Set("Content-Type", f.Type)
	_, _ = w.Write(f.Content)
}

// serveResponse takes an answer to an interaction.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	f := s.fault("response_url")
	if f != nil && !s.before(w, r, f) {
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	id := strings.TrimPrefix(r.URL.Path, "/respond/")
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.urls[id]
	if !known || n >= 5 {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "used_url")
		return
	}
	s.urls[id]++
	s.answers = append(s.answers, Answer{Interaction: id, Body: string(body)})
	s.touch()
	_, _ = io.WriteString(w, "ok")
}
