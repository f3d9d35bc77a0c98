package task

import (
	"context"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/kinds"
	"github.com/vedette-io/vedette/server/manifest"
)

// Get implements manifest.Cluster.
func (t *opContext) Get(ctx context.Context, apiVersion, kind, namespace, name string) (manifest.Manifest, error) {
	return t.get(ctx, vedette.Target{Kind: kind, APIVersion: apiVersion, Namespace: namespace, Name: name})
}

// Version implements manifest.Cluster.
func (t *opContext) Version(ctx context.Context, m manifest.Manifest) (vedette.Version, error) {
	out, err := t.query(ctx, "Failed to find the version of "+m.FullName()+": ", vedette.VersionArgs{Manifest: m.JSON()})
	if err != nil {
		return vedette.Version{}, err
	}
	var v vedette.Version
	if err := exactjson.Unmarshal(out.Result, &v, bodyLimits); err != nil {
		return v, vedette.Errorf(vedette.Unavailable, "the agent sent an invalid answer about the version of %s", m.FullName())
	}
	return v, nil
}

// Namespaced implements manifest.Cluster. It uses the kinds that the agent reports, and asks
// the cluster for other kinds.
func (t *opContext) Namespaced(ctx context.Context, apiVersion, kind string) (bool, error) {
	want := manifest.KindOf(apiVersion, kind)
	if t.copier == nil {
		return t.askNamespaced(ctx, want)
	}
	asked := askedKind(want)
	if index := t.journal.replay(asked); index >= 0 && t.journal.steps[index].Namespaced != nil {
		return *t.journal.steps[index].Namespaced, nil
	}
	isNamespaced, err := t.askNamespaced(ctx, want)
	if err == nil {
		t.answered(t.journal.begin(asked, false), func(s *step) { s.Namespaced = &isNamespaced })
	}
	return isNamespaced, err
}

func (t *opContext) askNamespaced(ctx context.Context, want vedette.Kind) (bool, error) {
	feeds, err := t.tasks.cfg.Accounts.Feeds(ctx, t.account())
	if err != nil {
		return false, err
	}
	for _, f := range feeds {
		if f.Resource.Kind == want {
			return f.Resource.Namespaced, nil
		}
	}
	found, err := t.findKind(ctx, want, kindsMaxAge)
	if err == nil && len(found) == 0 {
		found, err = t.findKind(ctx, want, missingKindsMaxAge)
	}
	if err != nil {
		return false, err
	}
	if len(found) > 0 {
		return found[0].Namespaced, nil
	}
	return false, vedette.Errorf(vedette.NotFound, "the cluster of %s does not serve the kind %s", t.account(), want)
}

// discoverer knows which kinds clusters serve.
type discoverer interface {
	Get(ctx context.Context, r kinds.Request, maxAge time.Duration) (*kinds.Catalogue, error)
}

const (
	// kindsMaxAge is short because a kind can be defined anew in another scope, and missingKindsMaxAge because it can be
	// defined and used right after.
	kindsMaxAge        = 10 * time.Second
	missingKindsMaxAge = time.Second
	// kindsRetry is the pause between questions to a cluster that does not answer.
	kindsRetry = 3 * time.Second
)

// findKind returns the kinds of a name that the cluster serves.
func (t *opContext) findKind(ctx context.Context, want vedette.Kind, maxAge time.Duration) ([]vedette.Resource, error) {
	all, err := t.servedKinds(ctx, maxAge)
	if err != nil {
		return nil, err
	}
	var found []vedette.Resource
	for k := range all.Kinds() {
		if k.Kind.Group == want.Group && strings.EqualFold(k.Kind.Name, want.Name) {
			found = append(found, k.Resource)
		}
	}
	return vedette.PreferExact(found, want.Name), nil
}

// servedKinds asks the cluster until it answers, for as long as an operation may take: its agent may just be connecting again.
func (t *opContext) servedKinds(ctx context.Context, maxAge time.Duration) (*kinds.Catalogue, error) {
	row, err := t.tasks.cfg.Accounts.Account(ctx, t.account())
	if err != nil {
		return nil, err
	}
	r := kinds.Request{Account: t.account(), Cluster: row.Cluster, Caller: t.options.Source, Requester: t.options.Requester}
	asking, cancel := context.WithTimeout(ctx, t.tasks.cfg.Timeout)
	defer cancel()
	for {
		all, err := t.tasks.cfg.Kinds.Get(asking, r, maxAge)
		if err == nil {
			return all, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, illegalState(cause.Error() + "; this operation was not started")
		}
		if vedette.KindOf(err) != vedette.Unavailable || sleep(asking, kindsRetry) != nil {
			return nil, &failure{class: kubectlException, cause: err.Error(),
				message: "Failed to ask the cluster which kinds it serves: " + err.Error()}
		}
	}
}
