package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
)

// scale sets the number of replicas, by the subresource that any kind may have.
func (r *run) scale(ctx context.Context, a vedette.ScaleArgs) result {
	if a.Replicas < 0 {
		return errorResult(vedette.Errorf(vedette.Invalid, "%d replicas can't be had", a.Replicas))
	}
	p, err := r.resolveObject(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, a.Replicas)
	var scale []byte
	err = r.retryOnConflict(ctx, func() (err error) {
		scale, _, err = r.do(ctx, p, request{method: http.MethodPatch, path: "/scale", contentType: contentTypeMergePatch, body: body,
			query: url.Values{"fieldManager": {apply.KubectlManager}}})
		return err
	})
	raw, status, readErr := r.readAtLeast(ctx, p, resourceVersionOf(scale)) // the Scale tells nothing that a reader knows
	switch {
	case isNotFound(err) && readErr == nil:
		return errorResult(vedette.Errorf(vedette.Invalid, "a %s can't be scaled", p.Kind))
	case err != nil:
		return errorResult(err)
	case readErr != nil:
		return errorResult(fmt.Errorf("%s is scaled, and can't be read: %w", p.key(), readErr))
	}
	if !r.dryRun {
		return r.objectResult(p, raw, status)
	}
	raw, message, err := withReplicas(raw, a.Replicas)
	if err != nil {
		return errorResult(err)
	}
	res := r.objectResult(p, raw, status)
	res.Message = message
	return res
}

// readAtLeast reads an object as it is at a version, or newer. API servers tell that
// from their memory, without asking etcd. What fails of it is asked for as it is
// now: a watch cache may be behind, and some API servers have none.
func (r *run) readAtLeast(ctx context.Context, p resourcePath, version string) ([]byte, int, error) {
	if version != "" {
		raw, status, err := r.do(ctx, p, request{query: url.Values{"resourceVersion": {version}}, nonIdempotent: true}) // the next try is the one below
		if err == nil {
			return raw, status, nil
		}
	}
	return r.do(ctx, p, request{})
}

// resourceVersionOf returns the resourceVersion of an object, empty where there is none.
func resourceVersionOf(raw []byte) string {
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	return o.Metadata.ResourceVersion
}
