package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
	"mimikit/core/telemetry/telemetrytest"
)

// The doctor finds what is wrong, says how to mend it, and fails only when the bot
// cannot work.
func TestDoctor(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	s, settings := slackAt(t, slackfake.Options{})
	d := deploy(t, llmtest.Answers("ready"), settings...)
	out, _ := d.run(0, "", "doctor")
	has(t, out, "✓ settings", "✓ Redis", "✓ model", "✓ Slack bot token", "✓ Slack scopes", "✓ Slack socket", "✓ workspaces")
	for _, secret := range []string{llmtest.Key, slackfake.BotToken, slackfake.AppToken} {
		if strings.Contains(out, secret) {
			t.Errorf("the output has the secret %q", secret)
		}
	}
	s.Scopes("chat:write", "users:read")
	out, _ = d.run(1, "", "doctor")
	has(t, out, "✗ Slack scopes", "missing:", "app_mentions:read", "→ paste the output of `mimikit slack manifest`")

	out, _ = d.with("MIMIKIT_SLACK_BOT_TOKEN=xoxb-wrong").run(1, "", "doctor")
	has(t, out, "✗ Slack bot token", "invalid_auth", "→ reinstall the app")

	d.model.Default = llmtest.Fails(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided")
	out, _ = d.with("MIMIKIT_SLACK_BOT_TOKEN", "MIMIKIT_SLACK_APP_TOKEN", "MIMIKIT_SLACK_API_URL").run(1, "", "doctor")
	has(t, out, "✗ model", "→ see llm.baseURL", "! platforms")

	out, _ = d.with("MIMIKIT_SLACK_APP_TOKEN").run(1, "", "doctor")
	has(t, out, "✗ settings", "slack.appToken: is not set", "→ mend them")
}

// The doctor tells whether the collector takes traces, and what to do where it does
// not; the bot works without it.
func TestDoctorLooksAtTraces(t *testing.T) {
	t.Parallel()
	storetest.Need(t)
	const secret = "otlp-secret-0123456789"
	collector := telemetrytest.NewCollector(t)
	d := deploy(t, llmtest.Answers("ready"))
	out, _ := d.run(0, "", "doctor")
	if strings.Contains(out, "traces") {
		t.Errorf("without a collector there is a line about it:\n%s", out)
	}
	d = d.with("MIMIKIT_TELEMETRY_OTLP_ENDPOINT="+collector.URL(), "MIMIKIT_TELEMETRY_OTLP_KEY="+secret)
	out, _ = d.run(0, "", "doctor")
	has(t, out, "✓ traces             "+collector.URL()+"/v1/traces took a request in ")
	heard := collector.Headers()
	if len(heard) != 1 || heard[0].Get("Authorization") != "Bearer "+secret || heard[0].Get("Content-Type") != "application/x-protobuf" || len(collector.Spans()) != 0 {
		t.Errorf("the collector heard %v and has %d spans", heard, len(collector.Spans()))
	}
	for status, mend := range map[int]string{401: "→ see MIMIKIT_TELEMETRY_OTLP_KEY", 404: "→ see telemetry.otlp.endpoint: it wants", 503: "→ see the collector's own log"} {
		collector.Instead(func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			return true
		})
		out, _ = d.run(0, "", "doctor")
		has(t, out, fmt.Sprintf("! traces             %s/v1/traces answered %d", collector.URL(), status), mend)
	}
	out, _ = d.with("MIMIKIT_TELEMETRY_OTLP_ENDPOINT=http://127.0.0.1:1").run(0, "", "doctor")
	has(t, out, "! traces", "connection refused", "4317 is for gRPC")
	if strings.Contains(out, secret) {
		t.Errorf("the output has the key:\n%s", out)
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	d := deploy(t, nil)
	out, _ := d.run(0, "", "slack", "manifest")
	has(t, out, `"socket_mode_enabled": true`, `"command": "/mimikit"`)
	out, _ = d.run(0, "", "slack", "manifest", "--url", "https://bot.example.org/slack/events", "--name", "Mimi")
	has(t, out, `"socket_mode_enabled": false`, `"request_url": "https://bot.example.org/slack/events"`, `"name": "Mimi"`)
	_, stderr := d.with("MIMIKIT_SLACK_MODE=http").run(1, "", "slack", "manifest")
	has(t, stderr, "add --url https://…/slack/events")
	_, stderr = d.run(1, "", "slack", "manifest", "--url", "http://bot.example.org")
	has(t, stderr, "https")
}
