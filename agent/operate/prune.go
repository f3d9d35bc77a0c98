package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
)

// defaultPruneKinds are those that kubectl prunes unless it is told which.
var defaultPruneKinds = []string{
	"core/v1/ConfigMap", "core/v1/Endpoints", "core/v1/PersistentVolumeClaim", "core/v1/Pod", "core/v1/ReplicationController", "core/v1/Secret",
	"core/v1/Service", "batch/v1/Job", "batch/v1/CronJob", "networking.k8s.io/v1/Ingress", "apps/v1/DaemonSet", "apps/v1/Deployment",
	"apps/v1/ReplicaSet", "apps/v1/StatefulSet", "core/v1/Namespace", "core/v1/PersistentVolume",
}

// prune deletes what was applied once and is not among what is kept. It does not
// wait until that is gone, as kubectl does not.
func (r *run) prune(ctx context.Context, a vedette.PruneArgs) result {
	collections, err := r.pruneCollections(ctx, a)
	if err != nil {
		return errorResult(err)
	}
	var res result
	for _, p := range collections {
		prunable, err := r.listPrunable(ctx, p, a)
		if err != nil {
			res.err = fmt.Errorf("prune %s: %w", p.Plural, err)
			return res
		}
		for _, v := range prunable {
			deleted, err := r.pruneOne(ctx, v, a)
			if err != nil {
				res.err = errors.Join(res.err, fmt.Errorf("prune %s: %w", v.key(), err))
			} else if deleted {
				res.Keys, res.UIDs = append(res.Keys, v.key()), append(res.UIDs, v.uid)
			}
		}
	}
	return res
}

// pruneCollections are the lists to look through, namespaced kinds first: all of them are
// found before anything is deleted.
func (r *run) pruneCollections(ctx context.Context, a vedette.PruneArgs) ([]resourcePath, error) {
	switch hasSelector := a.LabelSelector != ""; {
	case !hasSelector && !a.All, hasSelector && !hasLabelRequirements(a.LabelSelector):
		return nil, vedette.Errorf(vedette.Invalid, "the prune has neither labels nor says all: it would delete whatever was applied and is not among what is kept")
	case hasSelector && a.All:
		return nil, vedette.Errorf(vedette.Invalid, "the prune means all objects, and some by labels: leave one out")
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
			if p, err = r.resolveTarget(ctx, t); err != nil {
				return nil, err
			}
			if p.namespace == "" {
				return nil, vedette.Errorf(vedette.Invalid, "one of the namespaces to prune has no name: it would be all of them")
			}
			namespaced = append(namespaced, p)
		}
	}
	return append(namespaced, clusterScoped...), nil
}

// parsePruneKind reads a kind as kubectl's allowlist has it.
func parsePruneKind(kind string) (vedette.Target, error) {
	parts := strings.Split(kind, "/")
	if len(parts) != 3 || slices.Contains(parts[1:], "") {
		return vedette.Target{}, vedette.Errorf(vedette.Invalid, "%q is no kind to prune: write group/version/kind, as in apps/v1/Deployment or core/v1/Pod", kind)
	}
	if parts[0] == "core" || parts[0] == "" {
		return vedette.Target{Kind: parts[2], APIVersion: parts[1]}, nil
	}
	return vedette.Target{Kind: parts[2], APIVersion: parts[0] + "/" + parts[1]}, nil
}

// listPrunable finds what of a list was applied and is not kept.
func (r *run) listPrunable(ctx context.Context, p resourcePath, a vedette.PruneArgs) ([]deletion, error) {
	items, err := r.listAll(ctx, p.collection(), a.LabelSelector, "")
	if err != nil {
		return nil, err
	}
	var found []deletion
	for _, item := range items {
		meta, err := parseMeta(item)
		if err != nil {
			return nil, err
		}
		if _, applied := meta.Annotations[apply.LastApplied]; !applied || slices.Contains(a.Keep, string(meta.UID)) {
			continue
		}
		v := deletion{resourcePath: p, uid: string(meta.UID)}
		v.namespace, v.name = meta.Namespace, meta.Name
		found = append(found, v)
	}
	return found, nil
}

// pruneOne deletes the object that was found, and no other one of its name. It
// reports whether that was there.
func (r *run) pruneOne(ctx context.Context, v deletion, a vedette.PruneArgs) (bool, error) {
	_, err := r.deleteByUID(ctx, v, vedette.DeleteArgs{Propagation: a.Propagation, GraceSeconds: a.GraceSeconds, MissingOK: true})
	if isConflict(err) {
		return false, nil
	}
	return err == nil, err
}
