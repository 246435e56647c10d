package webread

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Bounds that nobody needs to change.
const (
	maxURL       = 4000     // bytes
	maxRedirects = 5        //
	maxHeader    = 64 << 10 // bytes of a response's header
	headerTime   = 15 * time.Second
)

// Options of a Reader. The zero value works.
type Options struct {
	Allow     Allow
	Timeout   time.Duration // of one page with its redirects; default 30 s
	MaxBytes  int64         // of a page, after decompression; what is over is not read; default 4 MiB
	MaxText   int           // bytes of the text that is given back; default 32 KiB
	UserAgent string        // default "mimikit"
	Resolver  *net.Resolver // default the system's
	TLS       *tls.Config   // default the system's
}

// A Reader fetches pages. It keeps no connection and no cookie, so that nothing
// of one page reaches the next. It is safe for concurrent use.
type Reader struct {
	o         Options
	transport *http.Transport
}

// New makes a Reader. It connects to nothing.
func New(o Options) *Reader {
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.MaxBytes = cmp.Or(o.MaxBytes, 4<<20)
	o.MaxText = cmp.Or(o.MaxText, 32<<10)
	o.UserAgent = cmp.Or(o.UserAgent, "mimikit")
	r := &Reader{o: o}
	r.transport = &http.Transport{
		Proxy:                  nil, // not the environment's: it may reach what we must not
		DialContext:            r.dial,
		TLSClientConfig:        o.TLS,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  headerTime,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true, // a kept connection was judged in the name of another host
	}
	return r
}

// Fetch reads a page. The address is one of http or https, without a user. A
// status that is an error is a Page like others, for its text may say why. What
// cannot be read is a [*Refusal]; a cancelled ctx gives its cause; other errors
// are the network's.
func (r *Reader) Fetch(ctx context.Context, address string) (Page, error) {
	u, err := parse(address)
	if err != nil {
		return Page{}, err
	}
	timed, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	page, err := r.follow(timed, u)
	switch {
	case ctx.Err() != nil: // also of a page whose beginning arrived
		return Page{}, fmt.Errorf("read %s: %w", u.Redacted(), context.Cause(ctx))
	case err == nil:
		return page, nil
	case errors.Is(timed.Err(), context.DeadlineExceeded):
		return Page{}, refuse("read %s: it took longer than %s", u.Redacted(), r.o.Timeout)
	}
	return Page{}, explain(u, err)
}

// parse checks an address before anything is asked of it.
func parse(address string) (*url.URL, error) {
	address = strings.TrimSpace(address)
	if len(address) > maxURL {
		return nil, refuse("read a page: the address is %d bytes long, at most %d are allowed", len(address), maxURL)
	}
	u, err := url.Parse(address)
	if err != nil {
		var bad *url.Error
		if errors.As(err, &bad) {
			err = bad.Err
		}
		return nil, refuse("read %.200q: it is no address: %s", address, err)
	}
	return u, check(u)
}

func check(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("read %.200q: only http and https addresses can be read, such as https://example.com/page", u.Redacted())
	case u.Hostname() == "":
		return refuse("read %.200q: it names no host", u.Redacted())
	case u.User != nil:
		return refuse("read %.200q: an address with a user name is not read", u.Redacted())
	}
	return nil
}

// follow asks for a page, and for where it redirects to. Redirects are followed
// here and not by a client, which would remember cookies and referrers.
func (r *Reader) follow(ctx context.Context, u *url.URL) (Page, error) {
	first := u
	for hops := 0; ; hops++ {
		resp, err := r.ask(ctx, u)
		if err != nil {
			return Page{}, err
		}
		to, redirected := resp.Header["Location"]
		if !redirected || len(to) == 0 || !isRedirect(resp.StatusCode) {
			page, err := r.read(u, resp)
			_ = resp.Body.Close()
			page.Asked = first.String()
			return page, err
		}
		_ = resp.Body.Close()
		if hops == maxRedirects {
			return Page{}, refuse("read %s: it redirects more than %d times", first, maxRedirects)
		}
		if len(to[0]) > maxURL {
			return Page{}, refuse("read %s: it redirects to an address of %d bytes, at most %d are allowed", first, len(to[0]), maxURL)
		}
		next, err := u.Parse(to[0])
		if err != nil {
			return Page{}, refuse("read %s: it redirects to %.200q, which is no address", first, to[0])
		}
		if err := check(next); err != nil {
			return Page{}, refuse("read %s: it redirects: %s", first, err)
		}
		if next.Fragment == "" {
			next.Fragment = u.Fragment
		}
		u = next
	}
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

func (r *Reader) ask(ctx context.Context, u *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", r.o.UserAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,text/markdown,text/plain,application/json,application/xml;q=0.9,text/*;q=0.8,*/*;q=0.5")
	req.Header.Set("Accept-Language", "en,*;q=0.5")
	return r.transport.RoundTrip(req)
}

// explain makes of the network's error one that says no more than is known in
// public.
func explain(u *url.URL, err error) error {
	var (
		refusal *Refusal
		private *privateError
		dns     *net.DNSError
		network *net.OpError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
	)
	at := u.Redacted()
	switch {
	case errors.As(err, &refusal):
		return err
	case errors.As(err, &private):
		return refuse("read %s: %s", at, private)
	case errors.As(err, &dns) && dns.IsNotFound:
		return refuse("read %s: there is no host %s", at, dns.Name)
	case errors.As(err, &dns):
		return fmt.Errorf("read %s: the name %s cannot be resolved now", at, dns.Name)
	case errors.As(err, &cert):
		return refuse("read %s: its certificate is not valid: %s", at, cert.Err)
	case errors.As(err, &record):
		return refuse("read %s: it does not speak TLS; try http", at)
	case errors.As(err, &network):
		return fmt.Errorf("read %s: the connection failed: %w", at, network.Err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return refuse("read %s: the server ended the connection early", at)
	}
	return fmt.Errorf("read %s: %w", at, err)
}
