package reload

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"
)

// Config configures a Watcher. Zero values mean the defaults.
type Config struct {
	// Quiet is how long files must not change before a change is reported; 250 ms.
	Quiet time.Duration
	// Longest is how long a change is kept back while files go on changing; 2 s.
	Longest time.Duration
	// Interval is how often to look without a notification; 3 s.
	Interval time.Duration
	// WithoutNotifications looks by Interval only.
	WithoutNotifications bool
	// Also makes Watch call changed without a changed file; nil for never.
	Also <-chan struct{}
	Log  *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Quiet = cmp.Or(c.Quiet, 250*time.Millisecond)
	c.Longest = cmp.Or(c.Longest, 2*time.Second)
	c.Interval = cmp.Or(c.Interval, 3*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Watch calls changed with the files that have changed, and goes on with the files that it returns,
// until ctx ends. Files need not exist. It calls changed at once if files is what changed returned
// before, because files may have changed between reading and watching them; the list is empty then.
func Watch(ctx context.Context, cfg Config, files []string, changed func(ctx context.Context, paths []string) []string) {
	cfg = cfg.withDefaults()
	w := &watcher{cfg: cfg, changed: changed, settling: settling{quiet: cfg.Quiet, longest: cfg.Longest}}
	if !cfg.WithoutNotifications {
		w.notifications = newNotifications(cfg.Log)
		defer w.notifications.close()
	}
	w.setFiles(files)
	w.report(ctx, nil)
	w.run(ctx)
}

// watcher belongs to the goroutine of Watch.
type watcher struct {
	cfg           Config
	changed       func(ctx context.Context, paths []string) []string
	files         []string
	last          snapshot
	settling      settling
	notifications *notifications // nil for none
}

func (w *watcher) run(ctx context.Context) {
	ticker := time.NewTicker(w.cfg.Interval)
	defer ticker.Stop()
	settled := time.NewTimer(time.Hour)
	defer settled.Stop()
	settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.notifications.events():
			settled.Reset(w.settling.notified(time.Now()))
		case <-ticker.C:
			if w.settling.first.IsZero() && w.hasChanged() {
				settled.Reset(w.settling.notified(time.Now()))
			}
		case <-w.cfg.Also:
			w.report(ctx, nil)
		case <-settled.C:
			w.settling.looked()
			w.look(ctx)
		}
	}
}

// hasChanged reports whether a file has changed since it was last reported. If none has, it remembers
// when it looked, so that files that were written just before the first look are not read each time.
func (w *watcher) hasChanged() bool {
	now, changed := w.last.take(w.files)
	if len(changed) == 0 {
		w.last = now
	}
	return len(changed) > 0
}

// look reports the files that have changed.
func (w *watcher) look(ctx context.Context) {
	now, changed := w.last.take(w.files)
	w.last = now
	if len(changed) > 0 {
		w.report(ctx, changed)
	}
	w.notifications.watch(w.files) // a folder may have been created, or replaced
}

// maxReports bounds how often a change is reported again because it leads to further files.
const maxReports = 3

// report calls changed until it names no further files. What is named by a file is read after the
// file, so it may have changed before its state was known.
func (w *watcher) report(ctx context.Context, paths []string) {
	for range maxReports {
		if !w.setFiles(w.changed(ctx, paths)) {
			return
		}
		paths = nil
	}
}

// setFiles replaces the files, and reports whether there are further ones.
func (w *watcher) setFiles(files []string) (more bool) {
	w.files = files
	states := snapshot{}
	for _, path := range files {
		before, known := w.last[path]
		if !known {
			more, before = true, stateOf(path, fileState{})
		}
		states[path] = before
	}
	w.last = states
	w.notifications.watch(slices.Clone(files))
	return more
}
