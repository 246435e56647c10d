package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// settled is how long after midnight a day is summed up: by then the other nodes
	// have told what they counted.
	settled  = 2 * time.Minute
	missed   = 7                    // days at most that are written later, when no node ran
	keepDays = 366 * 24 * time.Hour // of reports
)

// ReporterOptions say what is reported, and where to. Sources, Client and Dir are
// needed.
type ReporterOptions struct {
	Sources
	Client   redis.UniversalClient
	Prefix   string           // of all keys; default "mimikit"
	Dir      string           // reports are in reports/daily below it
	Name     string           // of the bot; default "Mimikit"
	Currency string           // of the prices
	Look     time.Duration    // how often is looked whether a day is over (default 1 min)
	Now      func() time.Time // default time.Now
	Logger   *slog.Logger     // default: none
}

// A Reporter writes reports. One at a time is to run among all nodes.
type Reporter struct{ o ReporterOptions }

// NewReporter checks the options. It starts nothing.
func NewReporter(o ReporterOptions) (*Reporter, error) {
	if o.Client == nil || o.Dir == "" || o.Tally == nil || o.Ledger == nil || o.Tasks == nil || o.Feedback == nil {
		return nil, errors.New("new reporter: Client, Dir and all Sources are needed")
	}
	o.Prefix, o.Name = cmp.Or(o.Prefix, "mimikit"), cmp.Or(o.Name, "Mimikit")
	o.Look = cmp.Or(o.Look, time.Minute)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Reporter{o}, nil
}

// Run writes each day's report until ctx ends; then it returns nil. What fails is
// tried again.
func (r *Reporter) Run(ctx context.Context) error {
	tick := time.NewTicker(r.o.Look)
	defer tick.Stop()
	for {
		paths, err := r.Once(ctx)
		for _, path := range paths {
			r.o.Logger.Info("report_written", "path", path)
		}
		if err != nil && ctx.Err() == nil {
			r.o.Logger.Warn("report_failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *Reporter) throughKey() string { return r.o.Prefix + ":report:through" }

// Once writes the reports of the days that are over and have none, and gives their
// paths. The first time it only notes where to begin.
func (r *Reporter) Once(ctx context.Context) ([]string, error) {
	yesterday := r.o.Now().UTC().Add(-settled).Truncate(24*time.Hour).AddDate(0, 0, -1)
	text, err := r.o.Client.Get(ctx, r.throughKey()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("look which reports are written: %w", err)
	}
	through, bad := time.Parse(time.DateOnly, text)
	if bad != nil { // never before, or by somebody else
		return nil, r.note(ctx, yesterday)
	}
	if oldest := yesterday.AddDate(0, 0, -missed); through.Before(oldest) {
		through = oldest
	}
	var paths []string
	for day := through.AddDate(0, 0, 1); !day.After(yesterday); day = day.AddDate(0, 0, 1) {
		path, _, err := r.Write(ctx, day)
		if err == nil {
			err = r.note(ctx, day)
		}
		if err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	if len(paths) > 0 {
		return paths, r.clean()
	}
	return nil, nil
}

func (r *Reporter) note(ctx context.Context, day time.Time) error {
	if err := r.o.Client.Set(ctx, r.throughKey(), day.Format(time.DateOnly), 0).Err(); err != nil {
		return fmt.Errorf("note that the report of %s is written: %w", day.Format(time.DateOnly), err)
	}
	return nil
}

// Write writes the report of a day in place of an older one, whole or not at all,
// and gives where it is and what it says.
func (r *Reporter) Write(ctx context.Context, day time.Time) (path, text string, err error) {
	d, err := r.o.Read(ctx, day)
	if err != nil {
		return "", "", fmt.Errorf("report of %s: %w", day.UTC().Format(time.DateOnly), err)
	}
	text = d.Markdown(r.o.Name, r.o.Currency, r.o.Now())
	path = filepath.Join(r.dir(), d.Day.Format(time.DateOnly)+".md")
	if err := put(path, text); err != nil {
		return "", "", fmt.Errorf("report of %s: %w", d.Day.Format(time.DateOnly), err)
	}
	return path, text, nil
}

func (r *Reporter) dir() string { return filepath.Join(r.o.Dir, "reports", "daily") }

// put writes a file that only its owner can read.
func put(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// clean removes reports that are older than a year.
func (r *Reporter) clean() error {
	files, err := os.ReadDir(r.dir())
	if err != nil {
		return fmt.Errorf("clean the reports: %w", err)
	}
	var problems error
	for _, f := range files {
		day, err := time.Parse(time.DateOnly, strings.TrimSuffix(f.Name(), ".md"))
		if err == nil && r.o.Now().Sub(day) > keepDays {
			problems = errors.Join(problems, os.Remove(filepath.Join(r.dir(), f.Name())))
		}
	}
	return problems
}
