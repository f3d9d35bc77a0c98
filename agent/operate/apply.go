package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
	"github.com/vedette-io/vedette/agent/operate/versioning"
)

// apply applies a manifest, by the strategy of the operation.
func (r *run) apply(ctx context.Context, a vedette.ApplyArgs) result {
	m, err := manifest.Parse(a.Manifest)
	if err != nil {
		return errorResult(err)
	}
	if err := checkMarker(m); err != nil {
		return errorResult(err)
	}
	if a.Fields == vedette.FieldValidationDefault {
		a.Fields = r.operator.cfg.FieldValidation
	}
	if err := checkFieldValidation(a.Fields); err != nil {
		return errorResult(err)
	}
	r.FieldValidation, r.fieldManager = fieldValidationParams[a.Fields], a.FieldManager
	res := r.applyManifest(ctx, m, a)
	if r.IsDryRun() && res.err == nil && r.secretPreview != nil {
		res.Result, res.err = r.previewSecret(ctx, m, a.Namespace)
	}
	res.err = r.MaskManifestValues(m, res.err)
	return res
}

func (r *run) applyManifest(ctx context.Context, m manifest.Manifest, a vedette.ApplyArgs) result {
	p, err := r.resolveManifest(ctx, &m, a.Namespace)
	if err != nil {
		return errorResult(err)
	}
	versioning.ClearDigest(m)
	if m.WasRead() && isMerge(a.Strategy) {
		if res, unchanged := r.unchangedSinceRead(ctx, p, m); unchanged {
			return res
		}
	}
	if err := checkRead(p, m); err != nil {
		return errorResult(err)
	}
	if m.Name == "" {
		return r.create(ctx, p, m)
	}
	switch a.Strategy {
	case vedette.StrategyCreateOnly:
		return r.create(ctx, p, m)
	case vedette.StrategyReplace:
		return r.replace(ctx, p, m, a.MustExist)
	case vedette.StrategyRecreate:
		return r.recreate(ctx, p, m)
	case vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyServerSide, vedette.StrategyForceConflicts:
		return r.applyByMode(ctx, p, m, a)
	}
	return errorResult(vedette.Errorf(vedette.Invalid, "%q is not a strategy", a.Strategy))
}

// isMerge reports whether nobody has asked for more than that the object matches the manifest. A server-side apply on
// request also takes the ownership of fields.
func isMerge(s vedette.Strategy) bool {
	return s == vedette.StrategyDefault || s == vedette.StrategyClientSide
}

func (r *run) applyByMode(ctx context.Context, p request.Path, m manifest.Manifest, a vedette.ApplyArgs) result {
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
func (r *run) warnIfDeleting(p request.Path, applied []json.RawMessage) {
	var o struct {
		Metadata struct {
			DeletionTimestamp string `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	if len(applied) == 1 && manifest.Decode(applied[0], &o) == nil && o.Metadata.DeletionTimestamp != "" {
		r.Warnings.Add(fmt.Sprintf("%s was applied, but is being deleted: apply it again when it is gone", p.Key()))
	}
}

func (r *run) applyOptionsFor(p request.Path, m manifest.Manifest, s vedette.Strategy) apply.Options {
	return r.operator.cfg.ServerSideApply.OptionsFor(p.Resource, m, s)
}

// resolveManifest returns the path of a manifest's object, and writes the kind and the namespace
// into the manifest, as kubectl does.
func (r *run) resolveManifest(ctx context.Context, m *manifest.Manifest, namespace string) (request.Path, error) {
	namespace = cmp.Or(m.Namespace, namespace, r.DefaultNamespace())
	t := vedette.Target{Kind: m.Kind, APIVersion: m.APIVersion, Namespace: namespace, Name: m.Name}
	p, err := r.ResolveTarget(ctx, t)
	if err != nil {
		return p, err
	}
	m.Object["kind"] = p.Kind.Name // it may be written in lower case
	if p.Namespace != "" {
		m.Meta()["namespace"] = p.Namespace
	} else {
		delete(m.Meta(), "namespace")
	}
	return p, nil
}

// create creates an object. It does not retry if the object may have been created: without a name
// there would be two, and with a name the retry would fail in spite of success.
func (r *run) create(ctx context.Context, p request.Path, m manifest.Manifest) result {
	if versioning.HasVersion(m) {
		return r.createVersion(ctx, p, m)
	}
	return r.createObject(ctx, p, m.Object, cmp.Or(r.fieldManager, createManager), true)
}

// createManager is kubectl's field manager of a create.
const createManager = "kubectl-create"

func (r *run) createObject(ctx context.Context, p request.Path, tree object, manager string, nonIdempotent bool) result {
	raw, status, err := postObject(ctx, r.Sender, p, tree, manager, nonIdempotent)
	if err != nil {
		return errorResult(err)
	}
	return r.objectResult(p, raw, status)
}

func postObject(ctx context.Context, s *request.Sender, p request.Path, tree object, manager string, nonIdempotent bool) ([]byte, int,
	error) {
	return s.Do(ctx, p, request.Request{Method: http.MethodPost, Body: manifest.Manifest{Object: tree}.WithoutPreconditions().Encode(),
		FieldManager: manager, NonIdempotent: nonIdempotent, IsManifest: true})
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
func (r *run) getLive(ctx context.Context, p request.Path) (*liveObject, error) {
	raw, _, err := r.Do(ctx, p, request.Request{})
	if request.IsNotFound(err) {
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
	if err := manifest.Decode(raw, &decoded); err != nil {
		return nil, request.InvalidResponse(p, err)
	}
	current := &liveObject{raw, decoded.Metadata.ResourceVersion, decoded.Metadata.Annotations[apply.LastApplied]}
	if p.IsSecret() {
		current.raw, err = withTypeMeta(p, raw)
	}
	return current, err
}

// withTypeMeta sets kind and apiVersion, which in an object that was read as metadata are those of
// PartialObjectMetadata.
func withTypeMeta(p request.Path, raw []byte) ([]byte, error) {
	var tree object
	if err := manifest.Decode(raw, &tree); err != nil {
		return nil, request.InvalidResponse(p, err)
	}
	tree["kind"], tree["apiVersion"] = p.Kind.Name, p.APIVersion()
	return json.Marshal(tree)
}
