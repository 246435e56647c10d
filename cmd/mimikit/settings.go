package main

import (
	"fmt"

	"mimikit/config"
)

// settingsCmd is `mimikit config`.
type settingsCmd struct {
	Check settingsCheckCmd `cmd:"" help:"Say whether the settings hold, and what is wrong with each that does not."`
	Print settingsPrintCmd `cmd:"" help:"Print all settings in force, and where each comes from. Secrets are masked."`
	Keys  settingsKeysCmd  `cmd:"" help:"List every setting: its environment variable, default and what is allowed."`
}

type settingsCheckCmd struct{}

// Run loads the settings; what is wrong is the error.
func (c *settingsCheckCmd) Run(std *streams, s *settings) error {
	if _, err := s.load(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(std.out, "The settings hold.")
	return err
}

type settingsPrintCmd struct{}

// Run prints the settings in force.
func (c *settingsPrintCmd) Run(std *streams, s *settings) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	return config.Print(std.out, cfg)
}

type settingsKeysCmd struct{}

// Run lists the settings.
func (c *settingsKeysCmd) Run(std *streams) error {
	t := newTable("SETTING", "ENVIRONMENT", "DEFAULT", "ALLOWED")
	for _, k := range config.Keys() {
		t.row(k.Name, k.Env, k.Default, k.Allowed)
	}
	return t.print(std.out)
}
