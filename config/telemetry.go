package config

import (
	"strings"
	"time"
)

// Telemetry sets what of this node can be followed from outside, besides its metrics
// and its log: traces. They are off unless OTLP.Endpoint is set.
type Telemetry struct {
	Service string        `koanf:"service"`                // what the traces call the program
	Sample  int           `koanf:"sample" allow:"0..100"`  // percent of all traces that are recorded
	Queue   int           `koanf:"queue" allow:"1..65536"` // spans that may wait to be sent; more are dropped
	Flush   time.Duration `koanf:"flush" allow:"0s..1m"`   // bound of the sending of the last spans when a process ends
	OTLP    OTLP          `koanf:"otlp"`
}

// OTLP names a collector of traces, which is spoken to over HTTP.
type OTLP struct {
	Endpoint string        `koanf:"endpoint"`
	Key      Secret        `koanf:"key"` // MIMIKIT_TELEMETRY_OTLP_KEY or KeyFile only
	KeyFile  string        `koanf:"keyFile" path:"y"`
	Headers  Headers       `koanf:"headers"`                // sent with every request
	Timeout  time.Duration `koanf:"timeout" allow:"1s..1m"` // one request with its repeats
}

// Sent are the headers of every request, the key among them.
func (o OTLP) Sent() map[string]string {
	all := map[string]string{}
	for name, value := range o.Headers {
		all[name] = value
	}
	if key := o.Key.Reveal(); key != "" {
		if !strings.Contains(key, " ") {
			key = "Bearer " + key
		}
		all["Authorization"] = key
	}
	return all
}

// telemetryForms are the rules of the keys of Telemetry.
var telemetryForms = map[string]form{
	"telemetry.service":       {"1 to 64 letters, digits, dots, dashes and underscores", serviceForm},
	"telemetry.otlp.endpoint": {"an http or https URL without credentials, query or fragment, like http://localhost:4318", optional(isBaseURL)},
}

func serviceForm(s string) bool { return len(s) <= 64 && nodeForm.MatchString(s) }

// telemetryTogether checks that what is set for a collector has one that it is for.
func (c *Config) telemetryTogether() []error {
	o := c.Telemetry.OTLP
	if o.Endpoint != "" {
		return nil
	}
	const none = "is set, but telemetry.otlp.endpoint is not, so no traces are sent"
	var out []error
	if o.Key != "" || o.KeyFile != "" {
		out = append(out, c.problem("telemetry.otlp.key", "", none))
	}
	if len(o.Headers) > 0 {
		out = append(out, c.problem("telemetry.otlp.headers", "", none))
	}
	return out
}
