package store

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// connect makes both clients; nothing is dialled yet.
func (s *Store) connect() {
	s.Client = s.client(s.opts.PoolSize, s.opts.PipelinePoolSize)
	s.Blocking = s.client(s.opts.BlockingPoolSize, -1)
}

func (s *Store) client(pool, pipelines int) redis.UniversalClient {
	o := s.opts
	u := &redis.UniversalOptions{
		Addrs:            o.Addrs,
		Username:         o.Username,
		Password:         o.Password,
		SentinelPassword: o.SentinelPassword,
		MasterName:       o.MasterName,
		DB:               o.DB,

		// A lost reply must reach the caller. The default repeats the command,
		// and with it the write.
		MaxRetries:            -1,
		ContextTimeoutEnabled: true,

		DialTimeout: o.DialTimeout,
		// Five attempts, the default, keep a caller waiting for 1.7 s in which it
		// could have told someone that Redis is away.
		DialerRetries: 1,
		ReadTimeout:   o.ReadTimeout,
		WriteTimeout:  o.WriteTimeout,

		PoolSize:         pool,
		PipelinePoolSize: pipelines,

		Dialer:    o.dialer,
		OnConnect: s.generation.onConnect,

		// Notices of a hosted Redis' maintenance; asking for them costs each new
		// connection a round trip.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if o.TLS {
		u.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	switch {
	case s.mini != nil:
		u.Addrs = []string{"in-process"}
		u.Dialer = func(context.Context, string, string) (net.Conn, error) {
			c, err := s.mini.Dial()
			if err != nil {
				return nil, err
			}
			return newMiniConn(c), nil
		}
		return redis.NewClient(u.Simple())
	case o.Mode == Embedded:
		u.Addrs = []string{s.embedded.socket}
		return redis.NewClient(u.Simple())
	case o.Mode == Sentinel:
		return redis.NewFailoverClient(u.Failover())
	case o.Mode == Cluster:
		u.Dialer = sealing(dialerOf(u))
		return redis.NewClusterClient(u.Cluster())
	}
	return redis.NewClient(u.Simple())
}

// dialerOf is the dialler that go-redis would use for u.
func dialerOf(u *redis.UniversalOptions) dialer {
	if u.Dialer != nil {
		return u.Dialer
	}
	return redis.NewDialer(&redis.Options{DialTimeout: u.DialTimeout, TLSConfig: u.TLSConfig})
}

// libraryLog receives what go-redis has to say, which it says to one global
// logger for all clients; by default it writes to stderr.
var libraryLog struct {
	once sync.Once
	to   atomic.Pointer[slog.Logger]
}

// logLibrary sends the library's messages to l, at debug level: every error in
// them also reaches the caller of the command.
func logLibrary(l *slog.Logger) {
	libraryLog.to.Store(l)
	libraryLog.once.Do(func() { redis.SetLogger(libraryLogger{}) })
}

type libraryLogger struct{}

func (libraryLogger) Printf(ctx context.Context, format string, v ...any) {
	if l := libraryLog.to.Load(); l.Enabled(ctx, slog.LevelDebug) {
		l.DebugContext(ctx, fmt.Sprintf(format, v...), "source", "go_redis")
	}
}
