package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/views"
)

// knownObject is what was stored of an object when its deletion was accepted; zero where
// nothing was, or another verb is asked for.
type knownObject struct {
	key vedette.Key
	uid string
}

// maxUIDLookup is how long an operation that is noted waits for what is known. It
// spares the agent one request to an API server nearby.
const maxUIDLookup = 20 * time.Millisecond

// lookUpUID looks up which object a deletion by name means, while the operation is
// noted. The channel is closed without a word where there is nothing to tell.
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
		uid, err := d.store.UID(ctx, op.Account, key)
		if err != nil || uid == "" {
			return // the agent asks its cluster
		}
		lookup <- knownObject{key, uid}
	}()
	return lookup
}

// applyUID hands the agent what is known.
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

// keyOf resolves a target among the kinds that an account's agents report. An agent
// resolves it among all that the cluster serves, and may come to another kind.
func (d *Dispatcher) keyOf(ctx context.Context, account vedette.AccountName, t vedette.Target) (vedette.Key, bool) {
	resources, err := d.store.Resources(ctx, account)
	if err != nil {
		return vedette.Key{}, false
	}
	r, err := views.FindResource(resources, t.Kind)
	if err != nil || t.APIVersion != "" && r.Kind.Group != groupOf(t.APIVersion) {
		return vedette.Key{}, false
	}
	key := vedette.Key{Kind: r.Kind, Name: t.Name}
	if r.Namespaced {
		key.Namespace = t.Namespace
		if key.Namespace == "" {
			key.Namespace = "default"
		}
	}
	return key, true
}

func groupOf(apiVersion string) string {
	group, _, qualified := strings.Cut(apiVersion, "/")
	if !qualified {
		return ""
	}
	return group
}
