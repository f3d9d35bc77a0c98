package watch

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
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
func (w *Watcher) noteDenial(f *feed, status Event) {
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

// logDenials logs the denied feeds if they differ from those that were logged last.
func (w *Watcher) logDenials() {
	names, reason, changed := w.denials.takeChange()
	switch {
	case !changed:
	case len(names) == 0:
		w.cfg.Log.Info("the cluster denies no feed any more")
	default:
		w.cfg.Log.Warn("the cluster denies feeds of the account", slog.Int("count", len(names)),
			slog.String("feeds", joinNames(names)), slog.String("reason", reason), slog.String("hint", denialHint(reason)))
	}
}

// takeChange returns the denied feeds, the reason of the first of them, and whether they
// have changed since the last call.
func (d *denials) takeChange() (names []string, reason string, changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := ""
	for feed, why := range d.feeds {
		name := feed.String()
		names = append(names, name)
		if first == "" || name < first {
			first, reason = name, why
		}
	}
	slices.Sort(names)
	if d.closed || slices.Equal(names, d.logged) {
		return names, reason, false
	}
	d.logged = names
	return names, reason, true
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
