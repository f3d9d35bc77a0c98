package operate

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// get reads one object.
func (r *run) get(ctx context.Context, a vedette.GetArgs) result {
	p, err := r.resolveObject(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	raw, status, err := r.do(ctx, p, request{decoding: notDecoded})
	if err != nil {
		return errorResult(err)
	}
	return r.objectResult(p, raw, status)
}

// objectResult is the result of a verb that returns one object.
func (r *run) objectResult(p resourcePath, raw []byte, status int) result {
	return r.objectResultSince(p, raw, status, "")
}

// objectResultSince is objectResult for an object that had previousVersion before the request. It is
// unchanged if it still has. Empty means unknown.
func (r *run) objectResultSince(p resourcePath, raw []byte, status int, previousVersion string) result {
	obj, err := r.redactObject(p.Resource, raw)
	if err != nil && r.operation.Changes() && !r.dryRun {
		// A success that cannot be read may be that of a proxy.
		return errorResult(&lostError{err: err, message: fmt.Sprintf("the cluster's response leaves open whether the request took effect: %v", err)})
	}
	if err != nil {
		return errorResult(err)
	}
	return result{Outcome: vedette.Outcome{Status: status, Objects: []json.RawMessage{obj.Body}, Keys: []vedette.Key{obj.Key},
		CacheObject: r.freshObject(p.Resource, &obj),
		Unchanged:   previousVersion != "" && previousVersion == obj.ResourceVersion}}
}

// freshObject returns the object to store, nil if no feed covers it, because nothing would report
// its deletion.
func (r *run) freshObject(resource vedette.Resource, obj *vedette.Object) *vedette.Object {
	if r.operator.cfg.CoveredByFeed != nil && !r.operator.cfg.CoveredByFeed(resource, obj) {
		return nil
	}
	return obj
}

// redactObject returns an object as it may leave the agent.
func (r *run) redactObject(resource vedette.Resource, raw []byte) (vedette.Object, error) {
	obj, _, err := r.operator.redactor.Load().Object(nil, resource, raw)
	if err != nil {
		return obj, fmt.Errorf("redact a %s: %w", resource.Kind, err)
	}
	return obj, nil
}

func parseListedMeta(raw []byte) (listedMeta, error) {
	var o struct {
		Metadata struct {
			Namespace   string                     `json:"namespace"`
			Name        string                     `json:"name"`
			UID         string                     `json:"uid"`
			Annotations map[string]json.RawMessage `json:"annotations"`
		} `json:"metadata"`
	}
	if err := exactjson.Unmarshal(raw, &o, countedAlready); err != nil {
		return listedMeta{}, vedette.Errorf(vedette.Unavailable, "the cluster's response has invalid metadata: %w", err)
	}
	_, applied := o.Metadata.Annotations[apply.LastApplied]
	return listedMeta{o.Metadata.Namespace, o.Metadata.Name, o.Metadata.UID, applied}, nil
}

func parseMeta(raw []byte) (*metav1.PartialObjectMetadata, error) {
	var meta metav1.PartialObjectMetadata
	if err := exactjson.Unmarshal(raw, &meta, countedAlready); err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the cluster's response has invalid metadata: %w", err)
	}
	return &meta, nil
}
