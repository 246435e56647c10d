package main

import (
	"errors"

	"mimikit/adapters/slack"
	"mimikit/config"
)

// slackCmds is `mimikit slack`.
type slackCmds struct {
	Manifest slackManifestCmd `cmd:"" help:"Print the manifest of the app, to be pasted into Slack. Nothing in it needs to be edited."`
}

type slackManifestCmd struct {
	URL  string `placeholder:"URL" help:"Where Slack reaches this deployment, like https://bot.example.org/slack/events. Needed for slack.mode http; makes a manifest for it."`
	Name string `placeholder:"NAME" help:"What the app is called. Default: the setting name."`
}

// Run prints the manifest. It needs no token: it is what one gets a token with.
func (c *slackManifestCmd) Run(std *streams, s *settings) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	if c.Name == "" {
		c.Name = cfg.Name
	}
	o := slack.ManifestOptions{Mode: slack.SocketMode, Name: c.Name, Command: cfg.Slack.Command, URL: c.URL, NoAgent: cfg.Slack.Agent == config.Off}
	switch {
	case c.URL != "":
		o.Mode = slack.HTTPMode
	case cfg.Slack.Mode == config.HTTPEvents:
		return errors.New("slack.mode is http, so the manifest must say where Slack reaches the bot: add --url https://…" + cfg.Slack.Path)
	}
	text, err := slack.Manifest(o)
	if err != nil {
		return err
	}
	_, err = std.out.Write(text)
	return err
}
