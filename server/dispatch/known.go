package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/views"
)

// known is what was stored of an object when its deletion was accepted; zero where
// nothing was, or another verb is asked for.
type known struct {
	key vedette.Key
	uid string
}

// mostKnowing is how long an operation that is noted waits for what is known. It
// spares the agent one request to an API server nearby.
const mostKnowing = 20 * time.Millisecond

// know looks up which object a deletion by name means, while the operation is
// noted. The channel is closed without a word where there is nothing to tell.
func (d *Dispatch) know(ctx context.Context, op vedette.Operation) <-chan known {
	found := make(chan known, 1)
	a, deletes := op.Args.(vedette.DeleteArgs)
	if !deletes || a.Name == "" {
		close(found)
		return found
	}
	go func() {
		defer close(found)
		key, ok := d.keyOf(ctx, op.Account, a.Target)
		if !ok {
			return
		}
		uid, err := d.book.UID(ctx, op.Account, key)
		if err != nil || uid == "" {
			return // the agent asks its cluster
		}
		found <- known{key, uid}
	}()
	return found
}

// learn hands the agent what is known.
func (e *errand) learn(found <-chan known) {
	a, deletes := e.op.Args.(vedette.DeleteArgs)
	if !deletes {
		return
	}
	enough := time.NewTimer(mostKnowing)
	defer enough.Stop()
	select {
	case k := <-found:
		a.KnownUID = k.uid
		e.op.Args, e.known = a, k
	case <-enough.C:
	}
}

// keyOf resolves a target among the kinds that an account's agents report. An agent
// resolves it among all that the cluster serves, and may come to another kind.
func (d *Dispatch) keyOf(ctx context.Context, account vedette.AccountName, t vedette.Target) (vedette.Key, bool) {
	resources, err := d.book.Resources(ctx, account)
	if err != nil {
		return vedette.Key{}, false
	}
	r, err := views.Find(resources, t.Kind)
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
