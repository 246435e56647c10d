package slack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A guard is the way of every request to Slack. Answers of the Web API are bounded
// in length, and our own tokens are taken out of them: errors are logged, counted and
// kept, and what stands between us and Slack may repeat in one what it was sent.
type guard struct {
	http.RoundTripper
	clean *strings.Replacer
}

func (o *Options) guard(base http.RoundTripper) *guard {
	secrets := []string{o.BotToken, o.AppToken, o.SigningSecret}
	// The longest first, so that one within another leaves no rest.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, "[secret]")
		}
	}
	return &guard{RoundTripper: base, clean: strings.NewReplacer(pairs...)}
}

// RoundTrip implements [http.RoundTripper]. Files, which are fetched with GET, pass
// as they are: whoever fetches one bounds it.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Status = g.clean.Replace(resp.Status)
	if r.Method == http.MethodGet && resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	_ = resp.Body.Close()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	data = []byte(g.clean.Replace(string(data)))
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return resp, nil
}

// CloseIdleConnections lets go of what is not in use.
func (g *guard) CloseIdleConnections() {
	if c, ok := g.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

var errElsewhere = errors.New("it redirects away from Slack")

// redirect follows a redirect of a file to Slack's own hosts, and no other: a call
// would be made a second time, with its token in the body, and a file from elsewhere
// is none of Slack's.
func (o *Options) redirect(r *http.Request, via []*http.Request) error {
	switch {
	case via[0].Method != http.MethodGet:
		return errElsewhere
	case len(via) >= 5:
		return errors.New("it redirects more than five times")
	case !o.isSlack(r.URL):
		return errElsewhere
	}
	return nil
}

// isSlack reports whether an address is Slack's, or that of the Web API as it was
// configured.
func (o *Options) isSlack(u *url.URL) bool {
	own, err := url.Parse(o.APIURL)
	if err == nil && u.Scheme == own.Scheme && strings.EqualFold(u.Host, own.Host) {
		return true
	}
	host := strings.ToLower(u.Hostname())
	return u.Scheme == "https" && slices.ContainsFunc([]string{"slack.com", "slack-gov.com"}, func(domain string) bool {
		return host == domain || strings.HasSuffix(host, "."+domain)
	})
}

// pathless is an error without the address that was asked: whoever has that of a file to
// upload, a socket or an answer needs no token.
func pathless(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
