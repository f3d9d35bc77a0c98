package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
)

// apply brings an object to what a manifest says.
func (r *run) apply(ctx context.Context, a vedette.ApplyArgs) result {
	m, err := parseManifest(a.Manifest)
	if err != nil {
		return errorResult(err)
	}
	if a.Fields == vedette.FieldValidationDefault {
		a.Fields = r.operator.cfg.FieldValidation
	}
	if err := checkFieldValidation(a.Fields); err != nil {
		return errorResult(err)
	}
	r.fieldValidation = fieldValidationParams[a.Fields]
	res := r.applyManifest(ctx, m, a)
	res.err = r.maskManifestValues(m, res.err)
	return res
}

func (r *run) applyManifest(ctx context.Context, m manifest, a vedette.ApplyArgs) result {
	p, err := r.resolveManifest(ctx, &m, a.Namespace)
	if err != nil {
		return errorResult(err)
	}
	m.clearDigest()
	if m.name == "" {
		return r.create(ctx, p, m)
	}
	switch a.Strategy {
	case vedette.StrategyCreateOnly:
		return r.create(ctx, p, m)
	case vedette.StrategyReplace:
		return r.replace(ctx, p, m)
	case vedette.StrategyRecreate:
		return r.recreate(ctx, p, m)
	case vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyServerSide, vedette.StrategyForceConflicts:
		return r.applyByMode(ctx, p, m, a)
	}
	return errorResult(vedette.Errorf(vedette.Invalid, "there is no strategy %q", a.Strategy))
}

func (r *run) applyByMode(ctx context.Context, p resourcePath, m manifest, a vedette.ApplyArgs) result {
	var res result
	if opts := r.applyOptionsFor(p, m, a); opts.serverSide {
		res = r.applyServerSide(ctx, p, m, opts)
	} else {
		res = r.applyClientSide(ctx, p, m)
	}
	r.warnIfDeleting(p, res.Objects)
	return res
}

// warnIfDeleting warns if the object that was applied is being deleted.
func (r *run) warnIfDeleting(p resourcePath, applied []json.RawMessage) {
	var o struct {
		Metadata struct{ DeletionTimestamp string }
	}
	if len(applied) == 1 && json.Unmarshal(applied[0], &o) == nil && o.Metadata.DeletionTimestamp != "" {
		r.warnings.add(fmt.Sprintf("%s is being deleted, with what was applied to it: apply it again once it is gone", p.key()))
	}
}

func (r *run) applyOptionsFor(p resourcePath, m manifest, a vedette.ApplyArgs) applyOptions {
	opts := r.operator.cfg.ServerSideApply.optionsFor(p.Resource, m, a.Strategy)
	opts.compare = a.Compare
	if !opts.serverSide && a.Strategy == vedette.StrategyDefault && len(m.encode()) > maxAnnotationBytes && !r.operator.cfg.ServerSideApply.isDisabledFor(p.Resource) {
		opts.serverSide, opts.force = true, true // its annotation would not fit; nobody asked for either way
	}
	return opts
}

// maxAnnotationBytes is what all annotations of an object may take together, less
// some room for others.
const maxAnnotationBytes = 250 << 10

// resolveManifest finds where a manifest's object belongs, and writes the namespace into
// the manifest, as kubectl does.
func (r *run) resolveManifest(ctx context.Context, m *manifest, namespace string) (resourcePath, error) {
	t := vedette.Target{Kind: m.kind, APIVersion: m.apiVersion, Namespace: firstNonEmpty(m.namespace, firstNonEmpty(namespace, "default")), Name: m.name}
	p, err := r.resolveTarget(ctx, t)
	if err != nil {
		return p, err
	}
	m.object["kind"] = p.Kind.Name // "deployment" is what some people write
	if p.namespace != "" {
		m.meta()["namespace"] = p.namespace
	} else {
		delete(m.meta(), "namespace")
	}
	return p, nil
}

// create posts a manifest. It is not tried again once it may have been taken:
// without a name there would be two, with one it would fail in spite of success.
func (r *run) create(ctx context.Context, p resourcePath, m manifest) result {
	r.setDigest(ctx, p, m)
	return r.createObject(ctx, p, m.object, "kubectl-create", true)
}

// createObject creates an object.
func (r *run) createObject(ctx context.Context, p resourcePath, tree object, manager string, nonIdempotent bool) result {
	raw, status, err := r.do(ctx, p.collection(), request{method: http.MethodPost, contentType: contentTypeJSON, body: manifest{object: withoutPreconditions(tree)}.encode(),
		query: url.Values{"fieldManager": {manager}}, nonIdempotent: nonIdempotent, accept: p.acceptHeader(), isManifest: true})
	if err != nil {
		return errorResult(err)
	}
	return r.objectResult(p, raw, status)
}

// liveObject is an object as it is in the cluster.
type liveObject struct {
	raw         []byte
	version     string
	lastApplied string // by kubectl, as its annotation says; empty where that is missing
}

// getLive reads an object; nil where it is not there.
func (r *run) getLive(ctx context.Context, p resourcePath) (*liveObject, error) {
	raw, _, err := r.do(ctx, p, request{})
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var decoded struct {
		Metadata struct {
			ResourceVersion string
			Annotations     map[string]string
		}
	}
	if err := json.Unmarshal(raw, &decoded); err != nil {
		return nil, decodeError(p, err)
	}
	current := &liveObject{raw, decoded.Metadata.ResourceVersion, decoded.Metadata.Annotations[lastApplied]}
	if p.isSecret() {
		current.raw, err = withTypeMeta(p, raw)
	}
	return current, err
}

func decodeError(p resourcePath, err error) error {
	return vedette.Errorf(vedette.Unavailable, "what the cluster sent for %s makes no sense: %w", p.key(), err)
}

// withTypeMeta has an object call itself what it is: one that was asked for as metadata
// does not.
func withTypeMeta(p resourcePath, raw []byte) ([]byte, error) {
	var tree object
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, decodeError(p, err)
	}
	tree["kind"], tree["apiVersion"] = p.Kind.Name, p.APIVersion()
	return json.Marshal(tree)
}

// nested returns what stands at a path of members, nil where something is missing.
func nested(from any, path ...string) any {
	for _, name := range path {
		o, _ := from.(object)
		from = o[name]
	}
	return from
}

func nestedString(from any, path ...string) string {
	s, _ := nested(from, path...).(string)
	return s
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
