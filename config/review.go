package config

import "time"

// Review sets what is looked at for those who run the bot: idle conversations, by
// a model, and each day, by a report.
type Review struct {
	Idle          time.Duration `koanf:"idle" allow:"0s..168h"`         // quiet everywhere after which conversations are reviewed, and pause between reviews; 0s: never
	Conversations int           `koanf:"conversations" allow:"1..1000"` // reviewed in one go, those first that changed last
	Tokens        int           `koanf:"tokens" allow:"0..1000000000"`  // that reviews may use in a day; 0 sets no bound
	Report        bool          `koanf:"report"`                        // write DataDir/reports/daily/YYYY-MM-DD.md after each UTC day
	Slow          time.Duration `koanf:"slow" allow:"0s..24h"`          // from a message to its decision, above which feedback is kept; 0s: never
	Heavy         int           `koanf:"heavy" allow:"0..1000000000"`   // tokens of one turn or task, above which feedback is kept; 0: never
}
