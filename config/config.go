// Package config reads what an operator may set, once, at start, and says so
// plainly when something is wrong with it.
//
// Values come in four layers, each overriding the one before: the defaults, the
// preset chosen by pace, one YAML file, and the environment. The struct [Config]
// is the only list of keys: the names in YAML, the names of the environment
// variables, the bounds, and the output of [Print] are all read from it, so none
// can be forgotten in one of them.
//
// Promised: a key or a MIMIKIT_ variable that does not exist is an error with
// the nearest one that does; every error names the place, the key, the value at
// fault and what is allowed, and all errors are told at once; a secret is taken
// from the environment or from a file of its own, never from the YAML, and is
// never printed. The package knows nothing of the parts it configures: cmd
// translates.
package config

import "time"

// Config is everything an operator may set. Durations and sizes carry their
// unit in YAML and environment ("1.2s", "20KiB").
//
// The tag koanf names a key, allow bounds it ("low..high" or "one|another"),
// path marks a file name. Rules that no tag can say are in forms, by key, and
// with the types of this package.
type Config struct {
	Name    string `koanf:"name"`                      // what the bot is called in its prompts and on the terminal
	DataDir string `koanf:"dataDir" path:"y"`          // directory for state and archive; Load fills in $XDG_STATE_HOME/mimikit, else ~/.local/state/mimikit
	Node    string `koanf:"node"`                      // id of this process among the nodes, unique; Load makes one of host, pid and chance
	Pace    Pace   `koanf:"pace" allow:"chat|relaxed"` // preset for what makes the bot quick or thrifty

	Teller     Teller     `koanf:"teller"`
	Thinker    Thinker    `koanf:"thinker"`
	History    History    `koanf:"history"`
	Worker     Worker     `koanf:"worker"`
	Triggers   Triggers   `koanf:"triggers"`
	MCP        MCP        `koanf:"mcp"`
	Approvals  Approvals  `koanf:"approvals"`
	Sandbox    Sandbox    `koanf:"sandbox"`
	Workspaces Workspaces `koanf:"workspaces"`
	Fetch      Fetch      `koanf:"fetch"`
	LLM        LLM        `koanf:"llm"`
	Budgets    Budgets    `koanf:"budgets"`
	Archive    Archive    `koanf:"archive"`
	Review     Review     `koanf:"review"`
	Redis      Redis      `koanf:"redis"`
	Channel    Channel    `koanf:"channel"`
	Outbox     Outbox     `koanf:"outbox"`
	Slack      Slack      `koanf:"slack"`
	Discord    Discord    `koanf:"discord"`
	Access     Access     `koanf:"access"`
	HTTP       HTTP       `koanf:"http"`
	Page       Page       `koanf:"page"`
	Prompts    Prompts    `koanf:"prompts"`
	Log        Log        `koanf:"log"`
	Telemetry  Telemetry  `koanf:"telemetry"`

	origin map[string]string // :: key -> where its value came from
}

// A Pace is a preset: chat answers at once, relaxed gathers more and calls the
// model less often.
type Pace string

// The paces.
const (
	Chat    Pace = "chat"
	Relaxed Pace = "relaxed"
)

// A Mode says whether a model call is made every time or only when it is of use.
type Mode string

// The modes.
const (
	Auto   Mode = "auto"
	Always Mode = "always"
)

// A Range is a window: at least Min whatever the budget, at most Max.
type Range struct {
	Min int `koanf:"min" allow:"0..1000"`
	Max int `koanf:"max" allow:"1..1000"`
}

// Teller sets the loop that hears and words.
type Teller struct {
	Poll            time.Duration `koanf:"poll" allow:"10ms..1m"`            // upper bound of a blocking read
	Debounce        time.Duration `koanf:"debounce" allow:"0s..10m"`         // quiet time before a digest
	MaxInputWait    time.Duration `koanf:"maxInputWait" allow:"0s..1h"`      // longest wait of the oldest input
	Digest          Mode          `koanf:"digest" allow:"auto|always"`       // auto: one short input alone needs no model call
	Format          Mode          `koanf:"format" allow:"auto|always"`       // auto: a decision worded by the thinker is posted as it is
	HistoryMessages Range         `koanf:"historyMessages"`                  // messages of history in a prompt
	HistoryTokens   int           `koanf:"historyTokens" allow:"0..1000000"` // tokens of history in a prompt
}

// Thinker sets the loop that decides.
type Thinker struct {
	Poll            time.Duration `koanf:"poll" allow:"10ms..1m"`        // upper bound of a blocking read
	MinInterval     time.Duration `koanf:"minInterval" allow:"0s..1h"`   // pause between two runs of one conversation
	MaxResultWait   time.Duration `koanf:"maxResultWait" allow:"0s..1h"` // longest wait of a task result without an input
	HistoryMessages Range         `koanf:"historyMessages"`              // messages of history in a prompt
	HistoryBytes    Bytes         `koanf:"historyBytes" allow:"1KiB..1MiB"`
	HistoryTokens   int           `koanf:"historyTokens" allow:"0..1000000"` // tokens of history in a prompt; 0 sets no bound
	Tasks           Range         `koanf:"tasks"`                            // recent tasks in a prompt
	TaskBytes       Bytes         `koanf:"taskBytes" allow:"1KiB..1MiB"`
	Rounds          int           `koanf:"rounds" allow:"1..20"`   // model calls of one turn: its look-ups are answered between them
	Mistakes        int           `koanf:"mistakes" allow:"1..10"` // wrong actions of one turn that go back to the model to be mended
}

// History sets when old lines of a conversation are folded into its running
// summary.
type History struct {
	Fold       bool `koanf:"fold"`
	FoldLines  int  `koanf:"foldLines" allow:"20..5000"`       // lines not folded yet at which folding begins
	FoldTokens int  `koanf:"foldTokens" allow:"1000..1000000"` // or their tokens
	Keep       int  `koanf:"keep" allow:"10..1000"`            // newest lines that stay as they are; fewer than FoldLines
}

// Redis says where state lives.
type Redis struct {
	Mode         RedisMode `koanf:"mode" allow:"embedded|memory|single|sentinel|cluster"`
	Addrs        []string  `koanf:"addrs"` // host:port each; for single also the path of a unix socket
	Username     string    `koanf:"username"`
	Password     Secret    `koanf:"password"` // MIMIKIT_REDIS_PASSWORD or PasswordFile only
	PasswordFile string    `koanf:"passwordFile" path:"y"`
	MasterName   string    `koanf:"masterName"` // Sentinel's name for the master
	DB           int       `koanf:"db" allow:"0..1023"`
	TLS          bool      `koanf:"tls"`
	Prefix       string    `koanf:"prefix"`             // begins every key, so that several bots can share a server
	Wait         int       `koanf:"wait" allow:"0..10"` // replicas that must have an input or a post marker before it counts; 0 asks none
}

// A RedisMode says which Redis is meant.
type RedisMode string

// The modes of Redis.
const (
	Embedded RedisMode = "embedded" // a redis-server of our own in the data directory; without one on PATH, as Memory
	Memory   RedisMode = "memory"   // in the process; state ends with it
	Single   RedisMode = "single"   // one server
	Sentinel RedisMode = "sentinel" // a master named by Sentinels
	Cluster  RedisMode = "cluster"  // Redis Cluster
)

// Channel sets the roads between the loops.
type Channel struct {
	Partitions     int           `koanf:"partitions" allow:"1..1024"` // fixed for the life of a deployment
	Lease          time.Duration `koanf:"lease" allow:"200ms..5m"`    // how long a dead node holds its partitions
	MaxWaiting     int           `koanf:"maxWaiting" allow:"1..1000"` // inputs of one conversation before more are refused
	MaxAttempts    int           `koanf:"maxAttempts" allow:"1..100"` // starts of one step before it goes to the dead letters
	RebalanceEvery time.Duration `koanf:"rebalanceEvery" allow:"100ms..10m"`
	StopGrace      time.Duration `koanf:"stopGrace" allow:"0s..10m"` // how long running turns may finish when a partition or the node is given up
}

// Outbox sets how replies are posted.
type Outbox struct {
	PostTimeout time.Duration `koanf:"postTimeout" allow:"1s..5m"`   // one post, from start to answer
	LookupAfter time.Duration `koanf:"lookupAfter" allow:"1s..10m"`  // from the start of a post until its unknown outcome is looked up; more than PostTimeout
	MaxAttempts int           `koanf:"maxAttempts" allow:"1..1000"`  // posts of one part before it is given up
	GiveUpAfter time.Duration `koanf:"giveUpAfter" allow:"1m..168h"` // age of a reply at which it is given up
}

// HTTP sets the endpoints for health and metrics.
type HTTP struct {
	Listen string `koanf:"listen"` // host:port, or "off"; empty leaves it to the command
}

// Address is where to listen, given the command's own default; empty means
// nowhere.
func (h HTTP) Address(fallback string) string {
	switch h.Listen {
	case "":
		return fallback
	case Off:
		return ""
	}
	return h.Listen
}

// Off is the value of http.listen that opens no port, and that of sandbox.mode
// that lets no command run.
const Off = "off"

// Prompts says where prompt files are shadowed from.
type Prompts struct {
	Dir string `koanf:"dir" path:"y"` // empty: the built-in prompts only
}

// Log sets what is logged and how.
type Log struct {
	Level  string `koanf:"level" allow:"debug|info|warn|error"`
	Format string `koanf:"format" allow:"json|text"`
}
