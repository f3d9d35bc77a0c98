package watch

import (
	"time"

	"github.com/vedette-io/vedette/agent/watch/lifecycle"
)

// noteConnLost records that a connection to the API server was lost. The cause, for
// example a firewall that forgot its connections or a proxy that was replaced, may have
// affected other feeds too.
func (w *Watcher) noteConnLost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connLostAt = time.Now()
}

// reconnectIfStale makes a feed of Secrets continue from its mark over a new connection,
// if its connection is older than the last loss of one. HTTP/2 finds lost connections with
// pings. The connections of Secrets have none and would wait for kube.DefaultIdleTimeout.
// Reconnecting costs one request. Lists are not interrupted: they would start over each
// time and never end if connections are lost often, and they wait for
// kube.Options.ProgressTimeout at most.
func (f *feed) reconnectIfStale(connLostAt time.Time) {
	if f.Kind == secretKind && !connLostAt.IsZero() {
		f.step(lifecycle.ReconnectWanted{Before: connLostAt})
	}
}
