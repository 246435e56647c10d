package webread_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"mimikit/core/webread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve is a server on this machine, which only an operator's word opens.
func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// here allows this machine, as an operator might.
func here() webread.Allow {
	return webread.Allow{Prefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
}

func refused(t *testing.T, err error, says string) {
	t.Helper()
	var r *webread.Refusal
	switch {
	case err == nil:
		t.Errorf("nothing was refused, want %q", says)
	case !errors.As(err, &r):
		t.Errorf("%v is no refusal, want %q", err, says)
	case !strings.Contains(err.Error(), says):
		t.Errorf("it said %q, want %q", err, says)
	}
}

// resolver answers names by a function, which is told how often it was asked.
func resolver(answer func(name string, nth int) []string) *net.Resolver {
	asked := make(chan int, 1)
	asked <- 0
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			for {
				_ = server.SetDeadline(time.Now().Add(5 * time.Second))
				q, err := receive(server)
				if err != nil {
					return
				}
				question := q.Questions[0]
				m := dnsmessage.Message{Header: dnsmessage.Header{ID: q.ID, Response: true, Authoritative: true, RecursionAvailable: true}, Questions: q.Questions}
				nth := 0
				if question.Type == dnsmessage.TypeA {
					nth = <-asked
					asked <- nth + 1
				}
				for _, a := range answer(strings.TrimSuffix(question.Name.String(), "."), nth) {
					ip := netip.MustParseAddr(a)
					head := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, Type: question.Type}
					switch {
					case ip.Is4() && question.Type == dnsmessage.TypeA:
						m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: ip.As4()}})
					case ip.Is6() && question.Type == dnsmessage.TypeAAAA:
						m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
					}
				}
				packed, err := m.Pack()
				if err != nil {
					return
				}
				if _, err := server.Write(append([]byte{byte(len(packed) >> 8), byte(len(packed))}, packed...)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}

// receive reads a question as DNS sends it over a stream.
func receive(c net.Conn) (m dnsmessage.Message, err error) {
	head := make([]byte, 2)
	if _, err = readFull(c, head); err != nil {
		return m, err
	}
	body := make([]byte, int(head[0])<<8|int(head[1]))
	if _, err = readFull(c, body); err != nil {
		return m, err
	}
	return m, m.Unpack(body)
}

func readFull(c net.Conn, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		k, err := c.Read(b[n:])
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}
