package operate

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// get reads one object.
func (r *run) get(ctx context.Context, a vedette.GetArgs) result {
	p, err := r.ResolveObject(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	raw, status, err := r.Do(ctx, p, request.Request{Decoding: request.NotDecoded})
	if err != nil {
		return errorResult(err)
	}
	return r.objectResult(p, raw, status)
}

// objectResult is the result of a verb that returns one object.
func (r *run) objectResult(p request.Path, raw []byte, status int) result {
	return r.objectResultSince(p, raw, status, "")
}

// objectResultSince is objectResult for an object that had previousVersion before the request. It is
// unchanged if it still has. Empty means unknown.
func (r *run) objectResultSince(p request.Path, raw []byte, status int, previousVersion string) result {
	obj, err := r.Redact(p.Resource, raw)
	if err != nil && r.Operation.Changes() && !r.IsDryRun() {
		// A success that cannot be read may be that of a proxy.
		return errorResult(&request.LostError{Err: err, Message: fmt.Sprintf("the cluster's response leaves open whether the request took effect: %v", err)})
	}
	if err != nil {
		return errorResult(err)
	}
	if r.IsDryRun() && p.IsSecret() {
		r.secretPreview = raw
	}
	res := result{Outcome: vedette.Outcome{Status: status, Objects: []json.RawMessage{obj.Body}, Keys: []vedette.Key{obj.Key},
		Unchanged: previousVersion != "" && previousVersion == obj.ResourceVersion}}
	res.CacheObject, res.Awaited = r.freshObject(p.Resource, &obj)
	return res
}

// freshObject returns the object to store, or its version if a feed reports it in another form. Both are nil if it has no version, or
// if no feed reports it, because nothing would report its deletion.
func (r *run) freshObject(resource vedette.Resource, obj *vedette.Object) (*vedette.Object, *vedette.ObjectVersion) {
	coverage := Reported
	switch {
	case obj.ResourceVersion == "":
		return nil, nil
	case r.operator.cfg.Coverage != nil:
		coverage = r.operator.cfg.Coverage(resource, obj)
	}
	switch coverage {
	case Reported:
		return obj, nil
	case ReportedElsewhere:
		return nil, &vedette.ObjectVersion{Key: obj.Key, Version: obj.ResourceVersion}
	}
	return nil, nil
}

func parseListedMeta(raw []byte) (listedMeta, error) {
	var o struct {
		Metadata struct {
			Namespace   string                     `json:"namespace"`
			Name        string                     `json:"name"`
			UID         string                     `json:"uid"`
			Version     string                     `json:"resourceVersion"`
			Annotations map[string]json.RawMessage `json:"annotations"`
			Owners      []struct {
				Controller bool `json:"controller"`
			} `json:"ownerReferences"`
			Managers []fieldManager `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := manifest.Decode(raw, &o); err != nil {
		return listedMeta{}, vedette.Errorf(vedette.Unavailable, "the cluster's response has invalid metadata: %w", err)
	}
	meta := listedMeta{namespace: o.Metadata.Namespace, name: o.Metadata.Name, uid: o.Metadata.UID, version: o.Metadata.Version}
	_, meta.managers.annotated = o.Metadata.Annotations[apply.LastApplied]
	for _, owner := range o.Metadata.Owners {
		meta.owned = meta.owned || owner.Controller
	}
	for _, m := range o.Metadata.Managers {
		meta.managers.add(m)
	}
	return meta, nil
}

func parseMeta(raw []byte) (*metav1.PartialObjectMetadata, error) {
	var meta metav1.PartialObjectMetadata
	if err := manifest.Decode(raw, &meta); err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the cluster's response has invalid metadata: %w", err)
	}
	return &meta, nil
}
