package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// defaultPruneKinds are the kinds that kubectl prunes by default.
var defaultPruneKinds = []string{
	"core/v1/ConfigMap", "core/v1/Endpoints", "core/v1/PersistentVolumeClaim", "core/v1/Pod", "core/v1/ReplicationController",
	"core/v1/Secret",
	"core/v1/Service", "batch/v1/Job", "batch/v1/CronJob", "networking.k8s.io/v1/Ingress", "apps/v1/DaemonSet", "apps/v1/Deployment",
	"apps/v1/ReplicaSet", "apps/v1/StatefulSet", "core/v1/Namespace", "core/v1/PersistentVolume",
}

// prune deletes the objects that were applied and are not in Keep. Like kubectl, it does not wait until
// they are gone. Unlike kubectl, it also finds objects that were applied server-side, which ConfigMaps and
// Secrets are by default.
func (r *run) prune(ctx context.Context, a vedette.PruneArgs) result {
	if len(a.Kinds) == 0 {
		a.Kinds = defaultPruneKinds
	}
	collections, err := r.pruneCollections(ctx, a)
	if err != nil {
		return errorResult(err)
	}
	left := prunedRest{PruneResult: vedette.PruneResult{Kinds: a.Kinds}}
	res := r.pruneAll(ctx, collections, a, &left)
	res.Result, err = json.Marshal(left.PruneResult)
	res.err = errors.Join(res.err, err)
	return res
}

// prunedRest collects what a prune leaves.
type prunedRest struct{ vedette.PruneResult }

// maxKept is how many objects that stay are named. More do not help a reader.
const maxKept = 500

func (l *prunedRest) keep(key vedette.Key, reason string) {
	if len(l.Kept) >= maxKept {
		l.KeptMore++
		return
	}
	l.Kept = append(l.Kept, vedette.KeptObject{Kind: key.Kind.String(), Namespace: key.Namespace, Name: key.Name, Reason: reason})
}

func (r *run) pruneAll(ctx context.Context, collections []request.Path, a vedette.PruneArgs, left *prunedRest) result {
	var res result
	var errs []error
	for _, p := range collections {
		prunable, err := r.listPrunable(ctx, p, a, left)
		if err != nil {
			res.err = errors.Join(append(errs, fmt.Errorf("prune %s: %w", p.Plural, err))...)
			return res
		}
		for _, v := range prunable {
			release := r.TemporaryMemory()
			deleted, err := r.pruneOne(ctx, v, a)
			if err != nil {
				errs = append(errs, fmt.Errorf("prune %s: %w", v.Key(), err))
				continue // what is kept of the error counts
			}
			if deleted {
				res.Keys, res.UIDs = append(res.Keys, v.Key()), append(res.UIDs, v.uid)
			} else {
				left.keep(v.Key(), "another object has its name since the prune began")
			}
			release()
		}
	}
	res.err = errors.Join(errs...)
	return res
}

// pruneCollections returns the collections to search, namespaced kinds first. It resolves all kinds
// before anything is deleted, so that a misspelled one deletes nothing.
func (r *run) pruneCollections(ctx context.Context, a vedette.PruneArgs) ([]request.Path, error) {
	switch hasSelector := a.LabelSelector != ""; {
	case !hasSelector && !a.All, hasSelector && !hasLabelRequirements(a.LabelSelector):
		return nil, vedette.Errorf(vedette.Invalid,
			"the prune has neither a labelSelector nor all: it would delete every applied object that is not kept")
	case hasSelector && a.All:
		return nil, vedette.Errorf(vedette.Invalid, "the prune has both a labelSelector and all: remove one of them")
	}
	if _, err := parsePropagation(a.Propagation); err != nil {
		return nil, err
	}
	var namespaced, clusterScoped []request.Path
	for _, kind := range a.Kinds {
		t, err := parsePruneKind(kind)
		if err != nil {
			return nil, err
		}
		p, err := r.ResolveTarget(ctx, t)
		if err != nil {
			return nil, err
		}
		if !p.Namespaced {
			clusterScoped = append(clusterScoped, p)
			continue
		}
		for _, t.Namespace = range a.Namespaces {
			p, err = r.ResolveTarget(ctx, t)
			if err != nil {
				return nil, err
			}
			if p.Namespace == "" {
				return nil, vedette.Errorf(vedette.Invalid, "a namespace to prune has an empty name, which would mean all namespaces")
			}
			namespaced = append(namespaced, p)
		}
	}
	return append(namespaced, clusterScoped...), nil
}

// parsePruneKind reads a kind in the form of kubectl's --prune-allowlist.
func parsePruneKind(kind string) (vedette.Target, error) {
	parts := strings.Split(kind, "/")
	if len(parts) != 3 || slices.Contains(parts[1:], "") {
		return vedette.Target{}, vedette.Errorf(vedette.Invalid,
			"%q is not a kind to prune: write group/version/kind, for example apps/v1/Deployment or core/v1/Pod", kind)
	}
	if parts[0] == "core" || parts[0] == "" {
		return vedette.Target{Kind: parts[2], APIVersion: parts[1]}, nil
	}
	return vedette.Target{Kind: parts[2], APIVersion: parts[0] + "/" + parts[1]}, nil
}

// listPrunable returns the objects of a collection that were applied and are not in Keep. It adds the others to left.
func (r *run) listPrunable(ctx context.Context, p request.Path, a vedette.PruneArgs, left *prunedRest) ([]deletion, error) {
	items, err := r.listMeta(ctx, p.Collection(), a.LabelSelector, "")
	if err != nil {
		return nil, err
	}
	keep := make(map[string]bool, len(a.Keep))
	for _, uid := range a.Keep {
		keep[uid] = true
	}
	var found []deletion
	for _, item := range items {
		v := deletion{Path: p, uid: item.uid}
		v.Namespace, v.Name = item.namespace, item.name
		reason := item.managers.keptReason(r.operator.cfg.Manager)
		switch {
		case keep[item.uid]:
		case reason == "":
			found = append(found, v)
		case item.owned:
			left.Owned++
		default:
			left.keep(v.Key(), reason)
		}
	}
	return found, nil
}

// pruneOne deletes an object by its uid, and reports whether it existed.
func (r *run) pruneOne(ctx context.Context, v deletion, a vedette.PruneArgs) (bool, error) {
	_, err := r.deleteByUID(ctx, v, vedette.DeleteArgs{Propagation: a.Propagation, GraceSeconds: a.GraceSeconds, MissingOK: true})
	if request.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}
