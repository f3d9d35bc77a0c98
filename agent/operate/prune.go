package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// defaultPruneKinds are the kinds that kubectl prunes by default.
var defaultPruneKinds = []string{
	"core/v1/ConfigMap", "core/v1/Endpoints", "core/v1/PersistentVolumeClaim", "core/v1/Pod", "core/v1/ReplicationController",
	"core/v1/Secret",
	"core/v1/Service", "batch/v1/Job", "batch/v1/CronJob", "networking.k8s.io/v1/Ingress", "apps/v1/DaemonSet", "apps/v1/Deployment",
	"apps/v1/ReplicaSet", "apps/v1/StatefulSet", "core/v1/Namespace", "core/v1/PersistentVolume",
}

// prune deletes the objects that were applied client-side and are not in Keep. Like kubectl, it does
// not wait until they are gone.
func (r *run) prune(ctx context.Context, a vedette.PruneArgs) result {
	collections, err := r.pruneCollections(ctx, a)
	if err != nil {
		return errorResult(err)
	}
	var res result
	var errs []error
	for _, p := range collections {
		prunable, err := r.listPrunable(ctx, p, a)
		if err != nil {
			res.err = errors.Join(append(errs, fmt.Errorf("prune %s: %w", p.Plural, err))...)
			return res
		}
		for _, v := range prunable {
			release := r.temporaryMemory()
			deleted, err := r.pruneOne(ctx, v, a)
			if err != nil {
				errs = append(errs, fmt.Errorf("prune %s: %w", v.key(), err))
				continue // what is kept of the error counts
			}
			if deleted {
				res.Keys, res.UIDs = append(res.Keys, v.key()), append(res.UIDs, v.uid)
			}
			release()
		}
	}
	res.err = errors.Join(errs...)
	return res
}

// pruneCollections returns the collections to search, namespaced kinds first. It resolves all kinds
// before anything is deleted, so that a misspelled one deletes nothing.
func (r *run) pruneCollections(ctx context.Context, a vedette.PruneArgs) ([]resourcePath, error) {
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
	kinds := a.Kinds
	if len(kinds) == 0 {
		kinds = defaultPruneKinds
	}
	var namespaced, clusterScoped []resourcePath
	for _, kind := range kinds {
		t, err := parsePruneKind(kind)
		if err != nil {
			return nil, err
		}
		p, err := r.resolveTarget(ctx, t)
		if err != nil {
			return nil, err
		}
		if !p.Namespaced {
			clusterScoped = append(clusterScoped, p)
			continue
		}
		for _, t.Namespace = range a.Namespaces {
			p, err = r.resolveTarget(ctx, t)
			if err != nil {
				return nil, err
			}
			if p.namespace == "" {
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

// listPrunable returns the objects of a collection that were applied and are not in Keep.
func (r *run) listPrunable(ctx context.Context, p resourcePath, a vedette.PruneArgs) ([]deletion, error) {
	items, err := r.listMeta(ctx, p.collection(), a.LabelSelector, "")
	if err != nil {
		return nil, err
	}
	keep := make(map[string]bool, len(a.Keep))
	for _, uid := range a.Keep {
		keep[uid] = true
	}
	var found []deletion
	for _, item := range items {
		if !item.applied || keep[item.uid] {
			continue
		}
		v := deletion{resourcePath: p, uid: item.uid}
		v.namespace, v.name = item.namespace, item.name
		found = append(found, v)
	}
	return found, nil
}

// pruneOne deletes an object by its uid, and reports whether it existed.
func (r *run) pruneOne(ctx context.Context, v deletion, a vedette.PruneArgs) (bool, error) {
	_, err := r.deleteByUID(ctx, v, vedette.DeleteArgs{Propagation: a.Propagation, GraceSeconds: a.GraceSeconds, MissingOK: true})
	if isConflict(err) {
		return false, nil
	}
	return err == nil, err
}
