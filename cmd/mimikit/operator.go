package main

import (
	"context"
	"fmt"
	"net/http"

	operator "mimikit/core/page"
	"mimikit/core/telemetry"
)

// servePage serves the operator's page until ctx ends.
func (a *App) servePage(ctx context.Context) error {
	c := a.cfg.Page
	p, err := operator.New(operator.Options{Commands: a.set, Name: a.cfg.Name, Token: c.Token.Reveal(), Local: c.Local(), Logger: a.log})
	if err != nil {
		return err
	}
	l, err := telemetry.Listen(ctx, c.Listen)
	if err != nil {
		return fmt.Errorf("%w (page.listen)", err)
	}
	a.log.Info("page_listens", "address", l.Addr().String())
	return telemetry.ServeOn(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Who looks on is let go when the node stops, so that nothing waits for them.
		with, leave := context.WithCancel(r.Context())
		defer leave()
		defer context.AfterFunc(ctx, leave)()
		p.ServeHTTP(w, r.WithContext(with))
	}))
}
