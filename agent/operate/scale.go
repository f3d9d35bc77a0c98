package operate

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// scale sets the number of replicas by the subresource scale, which custom kinds may have too.
func (r *run) scale(ctx context.Context, a vedette.ScaleArgs) result {
	if a.Replicas < 0 {
		return errorResult(vedette.Errorf(vedette.Invalid, "the number of replicas is %d: it must not be negative", a.Replicas))
	}
	p, err := r.ResolveObject(ctx, a.Target)
	if err != nil {
		return errorResult(err)
	}
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, a.Replicas)
	var scale []byte
	var scaleStatus int
	err = r.RetryOnConflict(ctx, func() (err error) {
		scale, scaleStatus, err = r.Do(ctx, p, request.Request{Method: http.MethodPatch, Path: "/scale",
			ContentType: request.ContentTypeMergePatch, Body: body, FieldManager: apply.KubectlManager})
		return err
	})
	raw, status, readErr := r.readAtLeast(ctx, p, request.ResourceVersionOf(scale)) // the response is a Scale, and not the object
	switch {
	case (request.IsNotFound(err) || request.IsKindNotFound(err)) && readErr == nil:
		return errorResult(vedette.Errorf(vedette.Invalid, "a %s can't be scaled: its kind has no subresource scale", p.Kind))
	case err != nil:
		return errorResult(err)
	case readErr != nil && r.IsDryRun():
		return errorResult(fmt.Errorf("%s could be scaled, but reading it failed: %w", p.Key(), readErr))
	case readErr != nil: // not an error, because the operation took effect
		r.Warnings.Add(fmt.Sprintf("%s was scaled, but reading it afterwards failed: %v", p.Key(), readErr))
		return r.unreadResult(p, scaleStatus, request.ResourceVersionOf(scale), readErr)
	}
	if !r.IsDryRun() {
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

// unreadResult is the result of a change that made an object have a version and could not read it afterwards. If the object is
// gone meanwhile, readers must not see it any more, in whatever state the server still has it.
func (r *run) unreadResult(p request.Path, status int, version string, readErr error) result {
	res := result{Outcome: vedette.Outcome{Status: status, Keys: []vedette.Key{p.Key()}}}
	if isObjectMissing(readErr) && version != "" {
		res.Absent = &vedette.Absence{Key: p.Key(), Version: version}
	}
	return res
}

// readAtLeast reads an object at a version or newer, which API servers serve from memory, without
// etcd. If that fails, it reads the current one, because a watch cache may be behind, and some API
// servers have none.
func (r *run) readAtLeast(ctx context.Context, p request.Path, version string) ([]byte, int, error) {
	if version != "" {
		// no retries: the request below is one
		raw, status, err := r.Do(ctx, p, request.Request{Query: url.Values{"resourceVersion": {version}}, NonIdempotent: true})
		if err == nil {
			return raw, status, nil
		}
	}
	return r.Do(ctx, p, request.Request{})
}
