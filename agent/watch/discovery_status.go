package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
)

// discoveryStatus is what is known of discovery itself. It belongs to Run.
type discoveryStatus struct {
	lastFailure  string               // as last logged; empty after a success
	failingSince time.Time            // zero after a success
	unknownSince map[string]time.Time // groups that could not be discovered, by since when
}

// discoverySucceeded notes a discovery, and the groups that it could not discover.
func (w *Watcher) discoverySucceeded(ctx context.Context, unknownGroups []string) error {
	d := &w.discovery
	since := make(map[string]time.Time, len(unknownGroups))
	for _, group := range unknownGroups {
		since[group] = time.Now()
		if earlier, known := d.unknownSince[group]; known {
			since[group] = earlier
		}
	}
	d.lastFailure = ""
	d.failingSince = time.Time{}
	d.unknownSince = since
	return w.endIfSinkFailed(w.clearStall(ctx, discoveryStall))
}

// discoveryFailed reports that discovery failed, because the feeds report their own states, but none of them says that kinds are
// missing. It waits for Config.MaxBackoff, in which an API server may restart. It does not wait if there are no feeds yet, because then
// nothing of the account can be read, nor if credentials are missing or rejected, because waiting does not change that.
func (w *Watcher) discoveryFailed(ctx context.Context, err error) {
	if kube.StatusCode(err) == http.StatusUnauthorized || kube.IsCertificateError(err) {
		w.c.ReloadCredentials()
	}
	d := &w.discovery
	if d.failingSince.IsZero() {
		d.failingSince = time.Now()
	}
	if failure := err.Error(); failure != d.lastFailure {
		d.lastFailure = failure
		w.cfg.Log.Warn("discovery failed, retrying", "cluster", w.c.Host(), "error", err)
	}
	r := reason{vedette.FeedFailing, err.Error()}
	if vedette.KindOf(err) == vedette.Denied {
		r.state = vedette.FeedDenied
	}
	if len(w.declared) > 0 {
		if r.state != vedette.FeedDenied && time.Since(d.failingSince) < w.cfg.MaxBackoff {
			return
		}
		r.message = fmt.Sprintf("discovery fails since %s, so kinds that were added to the cluster since are not watched: %v",
			d.failingSince.UTC().Format(time.RFC3339), err)
	}
	_ = w.endIfSinkFailed(w.setStall(ctx, discoveryStall, r)) // Run ends then
}

// endIfSinkFailed ends the Watcher if err is one of the sink.
func (w *Watcher) endIfSinkFailed(err error) error {
	if sinkErr, ok := errors.AsType[sinkError](err); ok {
		w.fail(sinkErr)
	}
	return err
}

// undiscoveredKinds returns those configured kinds whose group has been unknown for longer
// than Config.RediscoverInterval. An API server that restarts is not worth a message.
func (w *Watcher) undiscoveredKinds(unserved []string, now time.Time) (kinds []string) {
	for _, name := range unserved {
		_, group, _ := strings.Cut(name, ".")
		since, unknown := w.discovery.unknownSince[strings.ToLower(group)]
		if group != "" && unknown && now.Sub(since) > w.cfg.RediscoverInterval {
			kinds = append(kinds, name)
		}
	}
	return kinds
}

// describeUndiscovered says that kinds are not watched because their API server does not
// respond. It returns "" if there are none.
func describeUndiscovered(kinds []string) string {
	if len(kinds) == 0 {
		return ""
	}
	kinds = slices.Compact(slices.Sorted(slices.Values(kinds)))
	return "the API server of these kinds does not respond to discovery, so they are not watched: check its APIService: " + joinNames(kinds)
}

func joinProblems(problems ...string) string {
	return strings.Join(slices.DeleteFunc(problems, func(p string) bool { return p == "" }), "; ")
}
