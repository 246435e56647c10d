package discordfake

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
)

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /gateway", s.serveGateway)
	mux.HandleFunc("GET /gateway/resume", s.serveGateway)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"404: Not Found","code":0}`))
	})
	mux.HandleFunc("GET /attachments/{channel}/{id}/{name}", s.serveFile)
	for route, f := range map[string]routeFunc{
		"GET /gateway/bot": s.getGateway,
		"GET /users/@me":   func(request) (any, error) { return s.bot, nil },
		"GET /applications/@me": func(request) (any, error) {
			return map[string]any{"id": s.app, "name": s.bot.Username, "flags": s.flags()}, nil
		},
		"GET /users/@me/guilds":           s.listGuilds,
		"GET /guilds/{guild}":             s.getGuild,
		"POST /users/@me/channels":        s.openDirect,
		"GET /channels/{channel}":         s.getChannel,
		"PATCH /channels/{channel}":       s.patchChannel,
		"POST /channels/{channel}/typing": s.showTyping,

		"GET /channels/{channel}/messages":                                    s.listMessages,
		"POST /channels/{channel}/messages":                                   s.createMessage,
		"GET /channels/{channel}/messages/{message}":                          s.getMessage,
		"PATCH /channels/{channel}/messages/{message}":                        s.patchMessage,
		"DELETE /channels/{channel}/messages/{message}":                       s.deleteMessage,
		"PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me":    s.react,
		"DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me": s.unreact,
		"POST /channels/{channel}/messages/{message}/threads":                 s.threadFromMessage,
		"PUT /channels/{channel}/thread-members/@me":                          s.joinThread,

		"PUT /applications/{app}/commands":                s.putCommands,
		"PUT /applications/{app}/guilds/{guild}/commands": s.putCommands,
		"GET /applications/{app}/commands":                s.getCommands,
		"GET /applications/{app}/guilds/{guild}/commands": s.getCommands,

		"POST /interactions/{interaction}/{token}/callback": s.callback,
		"POST /webhooks/{app}/{token}":                      s.followUp,
		"PATCH /webhooks/{app}/{token}/messages/{message}":  s.patchAnswer,
		"GET /webhooks/{app}/{token}/messages/{message}":    s.getAnswer,
		"DELETE /webhooks/{app}/{token}/messages/{message}": s.deleteAnswer,
	} {
		s.handle(mux, route, f)
	}
	return mux
}

// flags tell in the portal which privileged intents are on, for a bot in few
// guilds.
func (s *Server) flags() int {
	if s.intents&messageContent != 0 {
		return 1 << 19
	}
	return 0
}

func (s *Server) gatewayURL() string { return "ws" + strings.TrimPrefix(s.base, "http") + "/gateway" }

func (s *Server) getGateway(request) (any, error) {
	g := &s.gateway
	resetAfter := g.refill()
	return map[string]any{
		"url": s.gatewayURL(), "shards": g.shards,
		"session_start_limit": map[string]any{
			"total": 1000, "remaining": max(g.remaining, 0), "reset_after": resetAfter.Milliseconds(), "max_concurrency": g.concurrency,
		},
	}, nil
}

// form takes a multipart body apart.
func (r *request) form() error {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" {
		return nil //nolint:nilerr // then the body is JSON, or not what the route takes
	}
	parts := multipart.NewReader(bytes.NewReader(r.body), params["boundary"])
	r.body, r.files, r.names = nil, map[string][]byte{}, map[string]string{}
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(p)
		if err != nil {
			return err
		}
		if p.FormName() == "payload_json" {
			r.body = content
			continue
		}
		r.files[p.FormName()], r.names[p.FormName()] = content, p.FileName()
	}
}
