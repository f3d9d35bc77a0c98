package operate

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/internal/exactjson"
)

// scale sets the number of replicas by the subresource scale, which custom kinds may have too.
func (r *run) scale(ctx context.Context, a vedette.ScaleArgs) result {
	if a.Replicas < 0 {
		return errorResult(vedette.Errorf(vedette.Invalid, "the number of replicas is %d: it must not be negative", a.Replicas))
	}
	p, err := r.resolveObject(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, a.Replicas)
	var scale []byte
	var scaleStatus int
	err = r.retryOnConflict(ctx, func() (err error) {
		scale, scaleStatus, err = r.do(ctx, p, request{method: http.MethodPatch, path: "/scale", contentType: contentTypeMergePatch, body: body,
			query: url.Values{"fieldManager": {apply.KubectlManager}}})
		return err
	})
	raw, status, readErr := r.readAtLeast(ctx, p, resourceVersionOf(scale)) // the response is a Scale, and not the object
	switch {
	case isNotFound(err) && readErr == nil:
		return errorResult(vedette.Errorf(vedette.Invalid, "a %s can't be scaled: its kind has no subresource scale", p.Kind))
	case err != nil:
		return errorResult(err)
	case readErr != nil && r.dryRun:
		return errorResult(fmt.Errorf("%s could be scaled, but reading it failed: %w", p.key(), readErr))
	case readErr != nil: // not an error, because the operation took effect
		r.warnings.add(fmt.Sprintf("%s was scaled, but reading it afterwards failed: %v", p.key(), readErr))
		return result{Outcome: vedette.Outcome{Status: scaleStatus, Keys: []vedette.Key{p.key()}}}
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

// readAtLeast reads an object at a version or newer, which API servers serve from memory, without
// etcd. If that fails, it reads the current one, because a watch cache may be behind, and some API
// servers have none.
func (r *run) readAtLeast(ctx context.Context, p resourcePath, version string) ([]byte, int, error) {
	if version != "" {
		// no retries: the request below is one
		raw, status, err := r.do(ctx, p, request{query: url.Values{"resourceVersion": {version}}, nonIdempotent: true})
		if err == nil {
			return raw, status, nil
		}
	}
	return r.do(ctx, p, request{})
}

// resourceVersionOf returns the resourceVersion of an object, empty for none.
func resourceVersionOf(raw []byte) string {
	var o struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if exactjson.Unmarshal(raw, &o, countedAlready) != nil {
		return ""
	}
	return o.Metadata.ResourceVersion
}
