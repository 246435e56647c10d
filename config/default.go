package config

import "time"

// Default is what an empty file and an empty environment give, at pace chat.
// DataDir, Workspaces.Dir and Node are left empty: they are known only at start.
func Default() Config {
	c := Config{
		Name: "Mimikit",
		Pace: Chat,
		Teller: Teller{
			HistoryMessages: Range{5, 20},
			HistoryTokens:   4096,
		},
		Thinker: Thinker{
			HistoryMessages: Range{20, 100},
			HistoryBytes:    20 * KiB,
			Tasks:           Range{5, 20},
			TaskBytes:       20 * KiB,
			Rounds:          6,
			Mistakes:        3,
		},
		History: History{Fold: true, FoldLines: 120, FoldTokens: 12000, Keep: 60},
		Worker: Worker{
			MaxConcurrent:      3,
			MaxPerConversation: 2,
			RetryMaxAttempts:   1,
			RetryBackoff:       5 * time.Second,
			Rounds:             50,
			Heartbeat:          10 * time.Second,
			Lease:              30 * time.Second,
			StopGrace:          10 * time.Second,
			Keep:               30 * 24 * time.Hour,
			Planner:            Profile{5 * time.Minute},
			Standard:           Profile{5 * time.Minute},
			Expert:             defaultExpert(),
		},
		Triggers:  Triggers{Look: 15 * time.Second},
		Approvals: Approvals{By: ByRequester, Timeout: time.Hour},
		Sandbox: Sandbox{
			Mode:      "auto",
			Timeout:   2 * time.Minute,
			Memory:    GiB,
			Processes: 64,
			Output:    64 * KiB,
			FileSize:  256 * MiB,
		},
		Workspaces: Workspaces{MaxBytes: GiB, MaxFiles: 20000},
		Fetch:      Fetch{Timeout: 20 * time.Second, MaxBytes: 2 * MiB},
		LLM: LLM{
			API:           "auto",
			Actions:       NativeActions,
			Timeout:       2 * time.Minute,
			Idle:          30 * time.Second,
			MaxConcurrent: 16,
			Attempts:      3,
			MaxWait:       30 * time.Second,
			Breaker:       Breaker{Failures: 5, Pause: 30 * time.Second},
			Second:        Endpoint{API: "auto"},
		},
		Budgets: Budgets{Currency: "USD", Warn: 80, Unknown: AllowUnknown},
		Archive: Archive{Calls: true, Keep: 30 * 24 * time.Hour, MaxBytes: 256 * KiB},
		Review:  Review{Idle: 30 * time.Minute, Conversations: 20, Tokens: 200_000, Report: true, Slow: time.Minute, Heavy: 100_000},
		Redis:   Redis{Mode: Embedded, Prefix: "mimikit"},
		Channel: Channel{
			Partitions:     16,
			Lease:          10 * time.Second,
			MaxWaiting:     500,
			MaxAttempts:    5,
			RebalanceEvery: 5 * time.Second,
			StopGrace:      30 * time.Second,
		},
		Outbox: Outbox{
			PostTimeout: 15 * time.Second,
			LookupAfter: 20 * time.Second,
			MaxAttempts: 100,
			GiveUpAfter: time.Hour,
		},
		Slack: Slack{
			Mode:     SocketEvents,
			Listen:   "127.0.0.1:3000",
			Path:     "/slack/events",
			Command:  "/mimikit",
			Agent:    "auto",
			Sockets:  4,
			MaxParts: 2,
			CatchUp:  12 * time.Hour,
		},
		Discord:   Discord{Mention: "thread", Content: true, MaxParts: 5, CatchUp: 12 * time.Hour},
		Access:    Access{PlatformAdmins: "admin", DirectMessages: true, MaxPerMinute: 30},
		Log:       Log{Level: "info", Format: "json"},
		Telemetry: Telemetry{Service: "mimikit", Sample: 100, Queue: 4096, Flush: 3 * time.Second, OTLP: OTLP{Timeout: 10 * time.Second}},
	}
	c.preset(Chat)
	return c
}

// presetKeys are the keys that pace sets; see preset.
var presetKeys = []string{
	"teller.poll", "teller.debounce", "teller.maxInputWait", "teller.digest", "teller.format",
	"thinker.poll", "thinker.minInterval", "thinker.maxResultWait", "llm.model",
}

// preset sets every key of presetKeys for a pace.
func (c *Config) preset(p Pace) {
	t, k := &c.Teller, &c.Thinker
	if p == Relaxed {
		t.Poll, k.Poll = time.Second, 2*time.Second
		t.Debounce, t.MaxInputWait = 10*time.Second, time.Minute
		t.Digest, t.Format = Always, Always
		k.MinInterval, k.MaxResultWait = 15*time.Second, 20*time.Second
		c.LLM.Model = "gpt-5.2-high"
		return
	}
	t.Poll, k.Poll = time.Second, time.Second
	t.Debounce, t.MaxInputWait = 1200*time.Millisecond, 5*time.Second
	t.Digest, t.Format = Auto, Auto
	k.MinInterval, k.MaxResultWait = 0, 500*time.Millisecond
	c.LLM.Model = ""
}
