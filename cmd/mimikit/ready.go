package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// readyCmd asks the node of this machine whether it is ready, for health checks
// where there is no other program to ask with.
type readyCmd struct {
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
}

// Run prints what the node says, and fails unless it is ready.
func (c *readyCmd) Run(ctx context.Context, std *streams, s *settings) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	at := cfg.HTTP.Address("127.0.0.1:8080")
	if at == "" {
		return fmt.Errorf("http.listen is off, so there is nobody to ask")
	}
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return fmt.Errorf("http.listen %q: %w", at, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return fmt.Errorf("ask the node whether it is ready: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return fmt.Errorf("ask the node whether it is ready: %w", err)
	}
	said := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", said)
	}
	_, err = fmt.Fprintln(std.out, said)
	return err
}
