package config

import "time"

// Worker sets the background tasks of one node. A task whose worker has been
// silent for a Lease is taken over by another.
type Worker struct {
	MaxConcurrent      int           `koanf:"maxConcurrent" allow:"1..256"`      // tasks at once
	MaxPerConversation int           `koanf:"maxPerConversation" allow:"0..256"` // of them of one conversation; 0 sets no bound
	RetryMaxAttempts   int           `koanf:"retryMaxAttempts" allow:"0..20"`    // runs after the first
	RetryBackoff       time.Duration `koanf:"retryBackoff" allow:"0s..1h"`
	Rounds             int           `koanf:"rounds" allow:"1..1000"` // steps of one task
	Heartbeat          time.Duration `koanf:"heartbeat" allow:"100ms..5m"`
	Lease              time.Duration `koanf:"lease" allow:"1s..10m"`     // at least three heartbeats
	StopGrace          time.Duration `koanf:"stopGrace" allow:"0s..10m"` // how long running tasks may take to hand back when the node stops
	Keep               time.Duration `koanf:"keep" allow:"1h..8760h"`    // how long a finished task can be looked up
	Planner            Profile       `koanf:"planner"`
	Standard           Profile       `koanf:"standard"`
	Expert             Expert        `koanf:"expert"`
}

// A Profile sets one kind of task.
type Profile struct {
	Timeout time.Duration `koanf:"timeout" allow:"1s..24h"`
}

// Triggers sets how triggers are looked after.
type Triggers struct {
	Look time.Duration `koanf:"look" allow:"1s..1h"` // how often the files of conditions are looked at
}

// Sandbox bounds a shell command of a task.
type Sandbox struct {
	Mode      string        `koanf:"mode" allow:"auto|off"` // auto: bubblewrap where it is to be had, else refused; Off: always refused
	Network   bool          `koanf:"network"`               // may reach the network, this machine's own services with it
	Timeout   time.Duration `koanf:"timeout" allow:"1s..1h"`
	Memory    Bytes         `koanf:"memory" allow:"16MiB..64GiB"`
	Processes int           `koanf:"processes" allow:"1..4096"`
	Output    Bytes         `koanf:"output" allow:"1KiB..1MiB"`    // what is kept of it
	FileSize  Bytes         `koanf:"fileSize" allow:"1KiB..64GiB"` // the largest file that it may write
}

// Workspaces says where the files of tasks are, and bounds those of one
// conversation.
type Workspaces struct {
	Dir      string `koanf:"dir" path:"y"` // Load fills in DataDir/workspaces
	MaxBytes Bytes  `koanf:"maxBytes" allow:"1MiB..1024GiB"`
	MaxFiles int    `koanf:"maxFiles" allow:"10..1000000"`
}

// Fetch bounds what a task reads from the web.
type Fetch struct {
	Timeout    time.Duration `koanf:"timeout" allow:"1s..10m"`      // one page, redirects included
	MaxBytes   Bytes         `koanf:"maxBytes" allow:"1KiB..64MiB"` // one page, unpacked
	AllowHosts []string      `koanf:"allowHosts"`                   // host names, addresses and networks that may be reached although they are private
}
