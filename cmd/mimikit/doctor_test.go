package main

import (
	"strings"
	"testing"

	"mimikit/adapters/adaptertest/slackfake"
	"mimikit/core/llm/llmtest"
	"mimikit/core/store/storetest"
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
