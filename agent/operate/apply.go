package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/artifact"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// apply applies a manifest, by the strategy of the operation.
func (r *run) apply(ctx context.Context, a vedette.ApplyArgs) result {
	m, err := manifest.Parse(a.Manifest)
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

func (r *run) applyManifest(ctx context.Context, m manifest.Manifest, a vedette.ApplyArgs) result {
	p, err := r.resolveManifest(ctx, &m, a.Namespace)
	if err != nil {
		return errorResult(err)
	}
	artifact.ClearDigest(m)
	if m.Name == "" {
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
	return errorResult(vedette.Errorf(vedette.Invalid, "%q is not a strategy", a.Strategy))
}

func (r *run) applyByMode(ctx context.Context, p resourcePath, m manifest.Manifest, a vedette.ApplyArgs) result {
	var res result
	if opts := r.applyOptionsFor(p, m, a.Strategy); opts.ServerSide {
		res = r.applyServerSide(ctx, p, m, opts, a.Compare)
	} else {
		res = r.applyClientSide(ctx, p, m)
	}
	r.warnIfDeleting(p, res.Objects)
	return res
}

// warnIfDeleting warns if the object that was applied is being deleted.
func (r *run) warnIfDeleting(p resourcePath, applied []json.RawMessage) {
	var o struct {
		Metadata struct {
			DeletionTimestamp string `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	if len(applied) == 1 && exactjson.Unmarshal(applied[0], &o, countedAlready) == nil && o.Metadata.DeletionTimestamp != "" {
		r.warnings.add(fmt.Sprintf("%s was applied, but is being deleted: apply it again when it is gone", p.key()))
	}
}

func (r *run) applyOptionsFor(p resourcePath, m manifest.Manifest, s vedette.Strategy) apply.Options {
	return r.operator.cfg.ServerSideApply.OptionsFor(p.Resource, m, s)
}

// resolveManifest returns the path of a manifest's object, and writes the kind and the namespace
// into the manifest, as kubectl does.
func (r *run) resolveManifest(ctx context.Context, m *manifest.Manifest, namespace string) (resourcePath, error) {
	namespace = cmp.Or(m.Namespace, namespace, r.defaultNamespace())
	t := vedette.Target{Kind: m.Kind, APIVersion: m.APIVersion, Namespace: namespace, Name: m.Name}
	p, err := r.resolveTarget(ctx, t)
	if err != nil {
		return p, err
	}
	m.Object["kind"] = p.Kind.Name // it may be written in lower case
	if p.namespace != "" {
		m.Meta()["namespace"] = p.namespace
	} else {
		delete(m.Meta(), "namespace")
	}
	return p, nil
}

// create creates an object. It does not retry if the object may have been created: without a name
// there would be two, and with a name the retry would fail in spite of success.
func (r *run) create(ctx context.Context, p resourcePath, m manifest.Manifest) result {
	if artifact.HasVersion(m) {
		return r.createVersion(ctx, p, m)
	}
	return r.createObject(ctx, p, m.Object, createManager, true)
}

// createManager is kubectl's field manager of a create.
const createManager = "kubectl-create"

func (r *run) createObject(ctx context.Context, p resourcePath, tree object, manager string, nonIdempotent bool) result {
	raw, status, err := r.postObject(ctx, p, tree, manager, nonIdempotent)
	if err != nil {
		return errorResult(err)
	}
	return r.objectResult(p, raw, status)
}

func (r *run) postObject(ctx context.Context, p resourcePath, tree object, manager string, nonIdempotent bool) ([]byte, int, error) {
	return r.do(ctx, p,
		request{method: http.MethodPost, toCollection: true, contentType: contentTypeJSON,
			body:  manifest.Manifest{Object: tree}.WithoutPreconditions().Encode(),
			query: url.Values{"fieldManager": {manager}}, nonIdempotent: nonIdempotent, accept: p.acceptHeader(), isManifest: true})
}

// object is a JSON object. Whole numbers in it are int64.
type object = map[string]any

// liveObject is an object in the cluster.
type liveObject struct {
	raw         []byte
	version     string
	lastApplied string // the last-applied annotation; empty for none
}

// getLive returns an object, nil if it does not exist.
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
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := exactjson.Unmarshal(raw, &decoded, countedAlready); err != nil {
		return nil, decodeError(p, err)
	}
	current := &liveObject{raw, decoded.Metadata.ResourceVersion, decoded.Metadata.Annotations[apply.LastApplied]}
	if p.isSecret() {
		current.raw, err = withTypeMeta(p, raw)
	}
	return current, err
}

func decodeError(p resourcePath, err error) error {
	return vedette.Errorf(vedette.Unavailable, "the cluster's response for %s is invalid: %w", p.key(), err)
}

// withTypeMeta sets kind and apiVersion, which in an object that was read as metadata are those of
// PartialObjectMetadata.
func withTypeMeta(p resourcePath, raw []byte) ([]byte, error) {
	var tree object
	if err := exactjson.Unmarshal(raw, &tree, countedAlready); err != nil {
		return nil, decodeError(p, err)
	}
	tree["kind"], tree["apiVersion"] = p.Kind.Name, p.APIVersion()
	return json.Marshal(tree)
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
