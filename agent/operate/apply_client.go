package operate

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/vedette-io/vedette/agent/operate/apply"
	"github.com/vedette-io/vedette/agent/operate/disclosure"
	"github.com/vedette-io/vedette/agent/operate/manifest"
	"github.com/vedette-io/vedette/agent/operate/request"
)

// applyClientSide merges a manifest with the live object and with what was applied last, as
// kubectl apply does.
func (r *run) applyClientSide(ctx context.Context, p request.Path, m manifest.Manifest) result {
	desired := apply.Annotate(m)
	var res result
	err := r.RetryOnConflict(ctx, func() error {
		current, err := r.getLive(ctx, p)
		if err != nil {
			return err
		}
		if current == nil {
			res = r.createObject(ctx, p, desired.ObjectToCreate(m), apply.ClientSideManager, false)
		} else {
			res = r.patchExisting(ctx, p, current, desired)
		}
		return asConflict(current != nil, res.err)
	})
	if err != nil {
		return errorResult(err)
	}
	return res
}

// asConflict turns AlreadyExists into a conflict if the object did not exist when it was read.
// Another client has created the object since, or an earlier request of the agent has, whose response
// was lost.
func asConflict(existed bool, err error) error {
	statusErr := request.AsStatusError(err)
	if existed || statusErr == nil || statusErr.Reason != "AlreadyExists" {
		return err
	}
	return &request.StatusError{Status: statusErr.Status, Reason: "Conflict", Message: statusErr.Message}
}

func (r *run) patchExisting(ctx context.Context, p request.Path, current *liveObject, desired apply.AnnotatedManifest) result {
	patch, patchType, err := r.threeWayPatch(ctx, p, current, desired)
	if err == nil {
		patch, err = disclosure.CheckThreeWayPatch(r.Sender, p, current.raw, patch)
	}
	if err != nil {
		return errorResult(err)
	}
	if string(patch) == "{}" {
		return r.objectResultSince(p, current.raw, http.StatusOK, current.version)
	}
	raw, status, err := r.Do(ctx, p, request.Request{Method: http.MethodPatch, ContentType: string(patchType), Body: patch,
		FieldManager: apply.ClientSideManager, IsManifest: true})
	if err != nil {
		return errorResult(err)
	}
	return r.objectResultSince(p, raw, status, current.version)
}

func (r *run) threeWayPatch(ctx context.Context, p request.Path, current *liveObject, desired apply.AnnotatedManifest) ([]byte,
	types.PatchType, error) {
	rules, err := r.lookupPatchMeta(ctx, p.Resource)
	if err != nil {
		return nil, "", err
	}
	return apply.ThreeWayMerge{Key: p.Key(), Desired: desired, Live: current.raw, LastApplied: current.lastApplied,
		Manager: r.operator.cfg.Manager, Rules: rules}.Patch()
}
