package dispatch

import (
	"net/http"

	"github.com/vedette-io/vedette"
)

// acceptFor sets the cluster that the operation is for, unless it is known already. The account may
// get another cluster while the operation waits for an agent.
func (f *inflight) acceptFor(cluster vedette.Cluster) {
	if f.op.Cluster == (vedette.Cluster{}) {
		f.op.Cluster = cluster
	}
}

// isFor reports whether an agent's cluster is the one that the operation was accepted for.
func (f *inflight) isFor(cluster vedette.Cluster) bool {
	f.acceptFor(cluster)
	return f.op.Cluster.Same(cluster)
}

// anotherClusterOutcome is the outcome of an operation whose account has another cluster now.
func (d *Dispatcher) anotherClusterOutcome(f *inflight, current *AttachedAgent, found vedette.Cluster) vedette.Outcome {
	if f.lastDelivery != nil && f.op.Changes() {
		return lostOutcome(f, "disconnected before it answered; the account belongs to another cluster now")
	}
	d.log.Warn("operation refused: the account has another cluster than when the operation was accepted", "operation", f.op.ID,
		"account", f.op.Account, "agent", current.member.ID, "expected", f.op.Cluster.String(), "found", found.String())
	return failedOutcome(http.StatusConflict, vedette.ReasonAnotherCluster, "account "+string(f.op.Account)+
		" belongs to another cluster than when the operation was accepted. Nothing was done: look at the account before you try again")
}
