package filewatch

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Config configures a Watcher. Zero values mean the defaults.
type Config struct {
	// Quiet is how long the kernel must not notify of anything before files are looked at; 250 ms.
	Quiet time.Duration
	// Longest is how long files are not looked at while notifications go on; 2 s.
	Longest time.Duration
	// Still is how long a file that is written in place must look the same before it is reported; 1 s.
	// Files that are replaced as a whole are reported at once.
	Still time.Duration
	// MaxWait is how long a change is kept back while files go on changing; 30 s.
	MaxWait time.Duration
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
	c.Still = cmp.Or(c.Still, time.Second)
	c.MaxWait = cmp.Or(c.MaxWait, 30*time.Second)
	c.Interval = cmp.Or(c.Interval, 3*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Change is what Watch reports.
type Change struct {
	// Paths are the files that have changed, and those that are watched from now on: whoever has read them
	// before may have read something else. There are none if Config.Also asked for the report, and if files
	// are written while they are read.
	Paths []string
	// isCurrent is nil if everything is.
	isCurrent func(paths []string) bool
}

// IsCurrent reports whether files still have the content that they had when they were found complete.
// If not, what was read from them meanwhile may be half of a file: another report follows when they are
// complete again. It returns false for files that are not watched yet, and true if they go on changing.
func (c Change) IsCurrent(paths []string) bool { return c.isCurrent == nil || c.isCurrent(paths) }

// Watch calls changed when files have changed and are complete, and goes on with the files that it
// returns, until ctx ends. Files need not exist.
//
// It reports each file once it knows what the file contains, at the start and when changed returns a
// further one. So whoever reads files when they are reported, or compares what they contain with what
// was read before, misses no change, no matter when they were read first.
func Watch(ctx context.Context, cfg Config, files []string, changed func(ctx context.Context, c Change) []string) {
	cfg = cfg.withDefaults()
	w := &watcher{cfg: cfg, changed: changed, due: true, last: fileStates{},
		debounce: debounce{quiet: cfg.Quiet, longest: cfg.Longest}, stability: stabilityCheck{still: cfg.Still, maxWait: cfg.MaxWait}}
	if !cfg.WithoutNotifications {
		w.notifications = newNotifications(cfg.Log)
		defer w.notifications.close()
	}
	w.setFiles(files)
	w.run(ctx)
}

// watcher belongs to the goroutine of Watch.
type watcher struct {
	cfg           Config
	changed       func(ctx context.Context, c Change) []string
	files         []string
	last          fileStates // of what was reported
	due           bool       // whether to report even if no file has changed
	debounce      debounce
	stability     stabilityCheck
	notifications *notifications // nil for none
}

func (w *watcher) run(ctx context.Context) {
	ticker := time.NewTicker(w.cfg.Interval)
	defer ticker.Stop()
	settled := time.NewTimer(0)
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.notifications.events():
			settled.Reset(w.debounce.notified(time.Now()))
		case <-ticker.C:
			if w.debounce.first.IsZero() && w.hasChanged() {
				settled.Reset(w.debounce.notified(time.Now()))
			}
		case <-w.cfg.Also:
			w.due = true
			settled.Reset(0)
		case <-settled.C:
			w.debounce.looked()
			if wait := w.look(ctx); wait > 0 {
				settled.Reset(wait)
			}
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

// maxReports bounds how often a change is reported again at once because it leads to further files.
const maxReports = 3

// look reports the files that have changed, and then the further ones. It returns when to look again;
// 0 if nothing is known to change.
func (w *watcher) look(ctx context.Context) time.Duration {
	defer func() { w.notifications.watch(w.files) }() // a directory may have been created, or replaced
	for range maxReports {
		now, changed := w.last.take(w.files)
		if len(changed) == 0 && !w.due {
			w.last = now
			w.stability.since = time.Time{}
			w.stability.seen = nil
			return 0
		}
		wait, goesOn := w.stability.look(time.Now(), w.last, now, changed)
		if wait > 0 {
			return wait
		}
		w.last = now
		if w.report(ctx, changed, goesOn) {
			return w.cfg.Quiet
		}
	}
	return w.cfg.Interval // each report led to further files
}

// report calls changed, and reports whether it found files that were being written again.
func (w *watcher) report(ctx context.Context, paths []string, goesOn bool) (isStale bool) {
	change := Change{Paths: paths}
	if !goesOn {
		change.isCurrent = func(paths []string) bool {
			isStale = !w.last.isCurrent(paths)
			return !isStale
		}
	}
	w.setFiles(w.changed(ctx, change))
	w.due = isStale
	return isStale
}

func (w *watcher) setFiles(files []string) {
	w.files = slices.Clone(files)
	wanted := map[string]bool{}
	for _, path := range files {
		wanted[path] = true
	}
	maps.DeleteFunc(w.last, func(path string, _ fileState) bool { return !wanted[path] })
	w.notifications.watch(w.files)
}
