package task

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/manifest"
)

// trafficOp is the description of operations that make Services select a workload's pods or
// not.
type trafficOp struct {
	commonFields
	targetFields
	LoadBalancers    stringList  `json:"loadBalancers"`    // "service web"; empty means those in the annotation
	TargetPercentage optionalInt `json:"targetPercentage"` // has no effect, as in Clouddriver; only its form is checked
}

func (d *trafficOp) check(v *validation) { v.checkTarget(d.target()) }

type enableOp struct{ trafficOp }

func (d *enableOp) run(ctx context.Context, t *opContext) (*Result, error) {
	return nil, d.perform(ctx, t, "enable", manifest.AttachPatch)
}

type disableOp struct{ trafficOp }

func (d *disableOp) run(ctx context.Context, t *opContext) (*Result, error) {
	return nil, d.perform(ctx, t, "disable", manifest.DetachPatch)
}

// patchFunc returns the patch of labels after which a Service selects an object or not.
type patchFunc func(service, object manifest.Manifest) ([]byte, error)

func (d *trafficOp) perform(ctx context.Context, t *opContext, verb string, patch patchFunc) error {
	target, err := d.target()
	if err != nil {
		return err
	}
	t.reportf("Starting %s operation in account %s...", verb, t.account())
	live, err := t.get(ctx, target.args())
	if vedette.KindOf(err) == vedette.NotFound {
		return illegalState(fmt.Sprintf("Could not find kubernetes manifest: %s", target))
	}
	if err != nil {
		return err
	}
	t.reportf("Getting load balancer list to %s...", verb)
	balancers, err := manifest.LoadBalancers(live, d.LoadBalancers)
	if err != nil {
		return err
	}
	t.reportf("Using %s list [%s]", d.listSource(), formatKeys(balancers))
	for i, key := range balancers {
		if i > 0 { // the previous patch changed the labels
			live, err = t.get(ctx, target.args())
			if err != nil {
				return err
			}
		}
		if err := t.patchForService(ctx, key, live, patch); err != nil {
			return err
		}
	}
	t.reportf("%s operation for %s succeeded", strings.ToUpper(verb[:1])+verb[1:], target)
	return nil
}

func (d *trafficOp) listSource() string {
	if len(d.LoadBalancers) > 0 {
		return "supplied"
	}
	return "annotated"
}

func formatKeys(keys []vedette.Key) string {
	var names []string
	for _, key := range keys {
		names = append(names, manifest.KindName(key.Kind)+" "+key.Name)
	}
	return strings.Join(names, ", ")
}

// patchForService patches a workload for one Service, for new pods. It also patches the
// existing pods of a ReplicaSet, because a ReplicaSet does not replace them.
func (t *opContext) patchForService(ctx context.Context, key vedette.Key, live manifest.Manifest, patch patchFunc) error {
	name := manifest.KindName(key.Kind) + " " + key.Name
	service, err := t.get(ctx, vedette.Target{Kind: key.Kind.Name, APIVersion: "v1", Namespace: key.Namespace, Name: key.Name})
	if vedette.KindOf(err) == vedette.NotFound {
		return illegalState(fmt.Sprintf("Could not find load balancer: %s.", name))
	}
	if err != nil {
		return err
	}
	t.reportf("Patching target for '%s'", name)
	if err := t.patchLabels(ctx, service, live, patch); err != nil {
		return err
	}
	if manifest.KindName(live.Kind()) != "replicaSet" {
		return nil
	}
	t.reportf("Patching pods for '%s'", name)
	pods, err := t.pods(ctx, live)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		err := t.patchLabels(ctx, service, pod, patch)
		if err != nil && vedette.KindOf(err) != vedette.NotFound { // the pod may be deleted
			return err
		}
	}
	return nil
}

// patchLabels patches one object, unless its labels are right already.
func (t *opContext) patchLabels(ctx context.Context, service, live manifest.Manifest, patch patchFunc) error {
	body, err := patch(service, live)
	if err != nil || body == nil {
		return err
	}
	target := vedette.Target{Kind: live.Kind().String(), APIVersion: live.APIVersion(), Namespace: live.Namespace(), Name: live.Name()}
	out, err := t.change(ctx, clusterChange{object: kubectlName(target),
		failurePrefix: fmt.Sprintf("Patch failed for: %s in namespace: %s: ", live.Name(), live.Namespace()),
		args:          vedette.PatchArgs{Target: target, Type: vedette.JSONPatch, Patch: body}, timeout: t.tasks.cfg.Timeout})
	if err != nil && out.Status == http.StatusNotFound {
		return vedette.Errorf(vedette.NotFound, "%s", err)
	}
	return err
}

func (t *opContext) pods(ctx context.Context, replicaSet manifest.Manifest) ([]manifest.Manifest, error) {
	var o struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Selector *metav1.LabelSelector `json:"selector"`
		} `json:"spec"`
	}
	if err := exactjson.Unmarshal(replicaSet.JSON(), &o, bodyLimits); err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "cannot read %s: %w", replicaSet.FullName(), err)
	}
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		return nil, vedette.Errorf(vedette.Unavailable, "cannot read the selector of %s: %w", replicaSet.FullName(), err)
	}
	pods, err := t.list(ctx, vedette.Target{Kind: "Pod", APIVersion: "v1", Namespace: replicaSet.Namespace()}, selector.String())
	return slices.DeleteFunc(pods, func(pod manifest.Manifest) bool { return !ownedBy(pod, string(o.Metadata.UID)) }), err
}

func ownedBy(pod manifest.Manifest, uid string) bool {
	var o struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if exactjson.Unmarshal(pod.JSON(), &o, bodyLimits) != nil {
		return false
	}
	return slices.ContainsFunc(o.Metadata.OwnerReferences, func(r metav1.OwnerReference) bool { return string(r.UID) == uid })
}
