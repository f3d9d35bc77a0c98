package watch

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// denials are the feeds of an account that the API server denies. They are logged
// together, because they usually have one cause and a line for each feed would hide it. A
// set that was logged is not logged again, although each of its feeds is retried.
type denials struct {
	mu     sync.Mutex
	feeds  map[vedette.Feed]string // with the reason
	logged []string                // the feeds that were logged last, sorted
	timer  *time.Timer             // nil before the first denial
	closed bool
}

// noteDenial records whether a feed is denied. A feed that is retried stays in the set until
// it is live.
func (w *Watcher) noteDenial(f *feed, status lifecycle.Report) {
	if f.isTrigger {
		return
	}
	switch status.State {
	case vedette.FeedDenied:
		w.denials.add(f.Feed, status.Message, w.cfg.SettleDelay, w.logDenials)
	case vedette.FeedLive:
		w.denials.remove(f.Feed)
	}
}

// add adds a feed, and calls log after a delay in which no further feed was added.
func (d *denials) add(feed vedette.Feed, reason string, delay time.Duration, log func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.feeds == nil {
		d.feeds = map[vedette.Feed]string{}
	}
	d.feeds[feed] = reason
	switch {
	case d.closed:
	case d.timer == nil:
		d.timer = time.AfterFunc(delay, log)
	default:
		d.timer.Reset(delay)
	}
}

// remove removes a feed that is not denied any more. What remains is logged after at most a
// second, if feeds were logged before.
func (d *denials) remove(feed vedette.Feed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, denied := d.feeds[feed]; !denied {
		return
	}
	delete(d.feeds, feed)
	if d.timer != nil && !d.closed {
		d.timer.Reset(time.Second)
	}
}

// close prevents further log lines.
func (d *denials) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// logDenials logs the denied feeds if they differ from those that were logged last. If a right was
// granted, others probably were too, so the remaining feeds do not wait for the end of their pauses.
func (w *Watcher) logDenials() {
	c := w.denials.takeChange()
	names := []any{slog.Int("count", len(c.names)), slog.String("feeds", joinNames(c.names))}
	switch {
	case !c.differs:
	case len(c.names) == 0:
		w.cfg.Log.Info("the cluster denies no feed any more")
	case !c.hasNew:
		w.cfg.Log.Info("the cluster denies fewer feeds of the account", names...)
		w.retryDeniedFeeds()
	default:
		w.cfg.Log.Warn("the cluster denies feeds of the account",
			append(names, slog.String("reason", c.reason), slog.String("hint", denialHint(c.reason)))...)
	}
}

// denialChange is what is denied, and how that differs from before.
type denialChange struct {
	names           []string // of the denied feeds, sorted
	reason          string   // of the first of them
	differs, hasNew bool     // from before; has a feed that was not denied before
}

// takeChange returns the denied feeds, and how they differ from those of the last call.
func (d *denials) takeChange() (c denialChange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := ""
	for feed, why := range d.feeds {
		name := feed.String()
		c.names = append(c.names, name)
		if first == "" || name < first {
			first, c.reason = name, why
		}
	}
	slices.Sort(c.names)
	if d.closed || slices.Equal(c.names, d.logged) {
		return c
	}
	c.differs = true
	c.hasNew = slices.ContainsFunc(c.names, func(name string) bool { return !slices.Contains(d.logged, name) })
	d.logged = c.names
	return c
}

// denialHint returns what to do about a denial. Missing rights are the cause unless the
// credentials themselves were rejected.
func denialHint(reason string) string {
	if strings.HasPrefix(reason, "RBAC ") {
		return "vedette-agent rbac prints the rules that the account needs and marks those that are missing"
	}
	return "renew the credentials of the account"
}

// joinNames joins the first names of a list.
func joinNames(names []string) string {
	shown := names[:min(len(names), 2*maxNamedKinds)]
	if more := len(names) - len(shown); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), more)
	}
	return strings.Join(shown, ", ")
}
