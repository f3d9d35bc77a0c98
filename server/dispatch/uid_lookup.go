package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/tables"
)

// knownObject is the stored object that a deletion names; zero if there is none or for
// other verbs.
type knownObject struct {
	key          vedette.Key
	uid, version string
}

// maxUIDLookup is how long an operation waits for the lookup after it was recorded. It
// is short because the lookup only saves the agent one request to a nearby API server.
const maxUIDLookup = 20 * time.Millisecond

// lookUpUID looks up the object that a deletion names, while the operation is recorded.
// The channel is closed without a value if nothing is known.
func (d *Dispatcher) lookUpUID(ctx context.Context, op vedette.Operation) <-chan knownObject {
	lookup := make(chan knownObject, 1)
	a, deletes := op.Args.(vedette.DeleteArgs)
	if !deletes || a.Name == "" {
		close(lookup)
		return lookup
	}
	go func() {
		defer close(lookup)
		key, ok := d.keyOf(ctx, op.Account, a.Target)
		if !ok {
			return
		}
		uid, version, err := d.store.UID(ctx, op.Account, key)
		if err != nil || uid == "" {
			return // the agent reads it from its cluster
		}
		lookup <- knownObject{key, uid, version}
	}()
	return lookup
}

// KnownUID returns the uid of the object that a deletion names, as it is stored; empty if that is not known in a moment.
func (d *Dispatcher) KnownUID(ctx context.Context, account vedette.AccountName, args vedette.DeleteArgs) string {
	ctx, cancel := context.WithTimeout(ctx, maxUIDLookup)
	defer cancel()
	return (<-d.lookUpUID(ctx, vedette.Operation{Account: account, Args: args})).uid
}

func (f *inflight) applyUID(lookup <-chan knownObject) {
	a, deletes := f.op.Args.(vedette.DeleteArgs)
	if !deletes {
		return
	}
	timer := time.NewTimer(maxUIDLookup)
	defer timer.Stop()
	select {
	case k := <-lookup:
		a.KnownUID = k.uid
		f.op.Args, f.known = a, k
	case <-timer.C:
	}
}

// keyOf resolves a target among the kinds that the account's agents report. The agent
// resolves it among all kinds of the cluster, so its result may differ.
func (d *Dispatcher) keyOf(ctx context.Context, account vedette.AccountName, t vedette.Target) (vedette.Key, bool) {
	resources, err := d.store.Resources(ctx, account)
	if err != nil {
		return vedette.Key{}, false
	}
	r, err := tables.FindResource(resources, t.Kind)
	switch {
	case err != nil, t.APIVersion != "" && r.Kind.Group != groupOf(t.APIVersion):
		return vedette.Key{}, false
	case t.APIVersion == "" && vedette.GroupHasVersion(r.Kind.Group): // only the cluster knows whether the name means another group
		return vedette.Key{}, false
	}
	key := vedette.Key{Kind: r.Kind, Name: t.Name}
	if r.Namespaced {
		key.Namespace = t.Namespace
	}
	// Without a namespace, the agent's kubeconfig decides.
	return key, key.Namespace != "" || !r.Namespaced
}

func groupOf(apiVersion string) string {
	group, _, qualified := strings.Cut(apiVersion, "/")
	if !qualified {
		return ""
	}
	return group
}
