package main

import (
	"io"

	"mimikit/config"
	"mimikit/core/llm"
)

// A hushed writer takes out of what is written the secrets of the settings, and what
// looks like one. Whoever writes an error has taken care already; this is for the one
// that comes from a place nobody thought of. Each Write must be whole, as a line of the
// log is.
type hushed struct {
	w     io.Writer
	scrub *llm.Scrubber
}

func hush(w io.Writer, cfg config.Config) io.Writer {
	return hushed{w, llm.NewScrubber(cfg.Secrets()...)}
}

func (h hushed) Write(p []byte) (int, error) {
	if _, err := io.WriteString(h.w, h.scrub.Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
