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
func (o *Operator) apply(ctx context.Context, a vedette.ApplyArgs) result {
	m, err := parseManifest(a.Manifest)
	if err != nil {
		return failed(err)
	}
	if a.Fields == vedette.FieldsByDefault {
		a.Fields = o.cfg.Fields
	}
	if err := checkFields(a.Fields); err != nil {
		return failed(err)
	}
	r := o.applyManifest(withFields(ctx, a.Fields), m, a)
	r.err = veil(ctx, m, r.err)
	return r
}

func (o *Operator) applyManifest(ctx context.Context, m manifest, a vedette.ApplyArgs) result {
	p, err := o.locate(ctx, &m, a.Namespace)
	if err != nil {
		return failed(err)
	}
	m.unmarked()
	if m.name == "" {
		return o.create(ctx, p, m)
	}
	switch a.Strategy {
	case vedette.CreateOnly:
		return o.create(ctx, p, m)
	case vedette.ReplaceObject:
		return o.replace(ctx, p, m)
	case vedette.Recreate:
		return o.recreate(ctx, p, m)
	case vedette.ByMode, vedette.ClientSide, vedette.ServerSide, vedette.ServerForce:
		return o.applyByMode(ctx, p, m, a)
	}
	return failed(vedette.Errorf(vedette.Invalid, "there is no strategy %q", a.Strategy))
}

func (o *Operator) applyByMode(ctx context.Context, p place, m manifest, a vedette.ApplyArgs) result {
	var r result
	if w := o.way(p, m, a); w.serverSide {
		r = o.applyServerSide(ctx, p, m, w)
	} else {
		r = o.applyClientSide(ctx, p, m)
	}
	warnOfDeletion(ctx, p, r.Objects)
	return r
}

// warnOfDeletion warns that what was applied goes away all the same.
func warnOfDeletion(ctx context.Context, p place, applied []json.RawMessage) {
	var o struct {
		Metadata struct{ DeletionTimestamp string }
	}
	if len(applied) == 1 && json.Unmarshal(applied[0], &o) == nil && o.Metadata.DeletionTimestamp != "" {
		warn(ctx, fmt.Sprintf("%s is being deleted, with what was applied to it: apply it again once it is gone", p.key()))
	}
}

func (o *Operator) way(p place, m manifest, a vedette.ApplyArgs) way {
	w := o.cfg.ServerSideApply.choose(p.Resource, m, a.Strategy)
	w.compare = a.Compare
	if !w.serverSide && a.Strategy == vedette.ByMode && len(m.raw()) > mostAnnotation && !o.cfg.ServerSideApply.never(p.Resource) {
		w.serverSide, w.force = true, true // its annotation would not fit; nobody asked for either way
	}
	return w
}

// mostAnnotation is what all annotations of an object may take together, less
// some room for others.
const mostAnnotation = 250 << 10

// locate finds where a manifest's object belongs, and writes the namespace into
// the manifest, as kubectl does.
func (o *Operator) locate(ctx context.Context, m *manifest, namespace string) (place, error) {
	t := vedette.Target{Kind: m.kind, APIVersion: m.apiVersion, Namespace: firstOf(m.namespace, firstOf(namespace, "default")), Name: m.name}
	p, err := o.findAll(ctx, t)
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
func (o *Operator) create(ctx context.Context, p place, m manifest) result {
	o.mark(ctx, p, m)
	return o.post(ctx, p, m.object, "kubectl-create", true)
}

// post creates an object.
func (o *Operator) post(ctx context.Context, p place, tree object, manager string, once bool) result {
	raw, status, err := o.do(ctx, p.list(), call{method: http.MethodPost, contentType: typeJSON, body: manifest{object: unpinned(tree)}.raw(),
		query: url.Values{"fieldManager": {manager}}, once: once, accept: p.accept(), manifest: true})
	if err != nil {
		return failed(err)
	}
	return o.told(p, raw, status)
}

// live is an object as it is in the cluster.
type live struct {
	raw     []byte
	version string
	applied string // by kubectl, as its annotation says; empty where that is missing
}

// live reads an object; nil where it is not there.
func (o *Operator) live(ctx context.Context, p place) (*live, error) {
	raw, _, err := o.do(ctx, p, call{})
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var read struct {
		Metadata struct {
			ResourceVersion string
			Annotations     map[string]string
		}
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		return nil, senseless(p, err)
	}
	at := &live{raw, read.Metadata.ResourceVersion, read.Metadata.Annotations[lastApplied]}
	if p.secret() {
		at.raw, err = selfNamed(p, raw)
	}
	return at, err
}

func senseless(p place, err error) error {
	return vedette.Errorf(vedette.Unavailable, "what the cluster sent for %s makes no sense: %w", p.key(), err)
}

// selfNamed has an object call itself what it is: one that was asked for as metadata
// does not.
func selfNamed(p place, raw []byte) ([]byte, error) {
	var tree object
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, senseless(p, err)
	}
	tree["kind"], tree["apiVersion"] = p.Kind.Name, p.APIVersion()
	return json.Marshal(tree)
}

// dig returns what stands at a path of members, nil where something is missing.
func dig(from any, path ...string) any {
	for _, name := range path {
		o, _ := from.(object)
		from = o[name]
	}
	return from
}

func text(from any, path ...string) string {
	s, _ := dig(from, path...).(string)
	return s
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
