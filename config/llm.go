package config

import "time"

// LLM names the model endpoint. With neither BaseURL nor Key, a local Ollama is
// used when it answers, else the built-in demo model.
type LLM struct {
	BaseURL       string        `koanf:"baseURL"` // OpenAI-compatible; empty with a key: OpenAI's own
	Key           Secret        `koanf:"key"`     // MIMIKIT_LLM_KEY or KeyFile only
	KeyFile       string        `koanf:"keyFile" path:"y"`
	API           string        `koanf:"api" allow:"auto|chat|responses"`
	Actions       string        `koanf:"actions" allow:"native|block"`
	Model         string        `koanf:"model"` // for every role that names none
	Models        Models        `koanf:"models"`
	Headers       Headers       `koanf:"headers"`                       // sent with every call
	Timeout       time.Duration `koanf:"timeout" allow:"1s..1h"`        // one call, from start to last byte
	Idle          time.Duration `koanf:"idle" allow:"1s..1h"`           // longest silence within a call
	MaxConcurrent int           `koanf:"maxConcurrent" allow:"1..1024"` // calls at once from this node
	Attempts      int           `koanf:"attempts" allow:"1..10"`        // calls of one model before the next in the chain is asked
	MaxWait       time.Duration `koanf:"maxWait" allow:"0s..10m"`       // a longer Retry-After is not waited for
	MaxTokens     int           `koanf:"maxTokens" allow:"0..1000000"`  // bound of one answer; 0 leaves it to the endpoint
	Breaker       Breaker       `koanf:"breaker"`
	Second        Endpoint      `koanf:"second"` // asked when the first cannot answer
	Prices        Prices        `koanf:"prices"` // by name of the model as the endpoint calls it, or a pattern of names
}

// The values of LLM.Actions: how a model says what is to be done.
const (
	NativeActions = "native" // by tool calls
	BlockActions  = "block"  // by lines in its text, for models that have no tool calls
)

// Models names a model for each role; an empty one means LLM.Model. Those of
// Fallback are asked in this order, at the first endpoint, when a role's own
// fails.
type Models struct {
	Teller   string   `koanf:"teller"`
	Thinker  string   `koanf:"thinker"`
	Planner  string   `koanf:"planner"`
	Standard string   `koanf:"standard"`
	Expert   string   `koanf:"expert"`
	Fallback []string `koanf:"fallback"`
}

// An Endpoint is a further place where models answer.
type Endpoint struct {
	BaseURL string  `koanf:"baseURL"` // as LLM.BaseURL
	Key     Secret  `koanf:"key"`     // MIMIKIT_LLM_SECOND_KEY or KeyFile only
	KeyFile string  `koanf:"keyFile" path:"y"`
	API     string  `koanf:"api" allow:"auto|chat|responses"`
	Model   string  `koanf:"model"`   // for every role; empty asks for the role's model at the first endpoint
	Headers Headers `koanf:"headers"` // sent with every call
}

// Breaker says when a model that fails is left alone for a while.
type Breaker struct {
	Failures int           `koanf:"failures" allow:"1..100"` // in a row
	Pause    time.Duration `koanf:"pause" allow:"1s..1h"`    // until it is tried again
}

// Configured reports whether a real endpoint is set, so that the demo model must
// not be chosen.
func (l LLM) Configured() bool { return l.BaseURL != "" || l.Key != "" }

// Configured reports whether there is a second endpoint.
func (e Endpoint) Configured() bool { return e.BaseURL != "" || e.Key != "" }

// Budgets bound what the models may cost: for a user, a place and a workspace in
// a day (UTC), for a task in all its runs. A call that would go over one is not
// made.
type Budgets struct {
	Currency  string `koanf:"currency"` // of LLM.Prices and of every Money; shown, never converted
	User      Budget `koanf:"user"`
	Place     Budget `koanf:"place"`
	Workspace Budget `koanf:"workspace"`
	Task      Budget `koanf:"task"`
	Warn      int    `koanf:"warn" allow:"1..100"`          // percent of a budget at which a person is told, once
	Unknown   string `koanf:"unknown" allow:"allow|refuse"` // calls while nobody can say what is spent
}

// The values of Budgets.Unknown.
const (
	AllowUnknown  = "allow"
	RefuseUnknown = "refuse"
)

// A Budget bounds tokens, money, or both; 0 sets no bound.
type Budget struct {
	Tokens int   `koanf:"tokens" allow:"0..2000000000"` // of prompt and answer
	Money  Money `koanf:"money" allow:"0..1000000000"`  // by LLM.Prices
}

// Archive sets what is kept in files for people to read, below DataDir/llm and
// DataDir/tasks.
type Archive struct {
	Calls    bool          `koanf:"calls"` // every call of a model
	Keep     time.Duration `koanf:"keep" allow:"1h..87600h"`
	MaxBytes Bytes         `koanf:"maxBytes" allow:"1KiB..16MiB"` // of one call; what is longer is cut
}
