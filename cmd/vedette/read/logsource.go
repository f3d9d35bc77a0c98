package read

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/cli/fanout"
	"github.com/vedette-io/vedette/internal/cli/target"
	"github.com/vedette-io/vedette/internal/client"
)

// findLogs finds the logs of a target in one account.
func (o *logOptions) findLogs(ctx context.Context, run *fanout.Run, t target.Target) ([]client.LogQuery, error) {
	if t.Account != "" && t.Account != run.Account {
		return nil, nil
	}
	pods, err := podsOf(ctx, run, t)
	var all []client.LogQuery
	for _, pod := range pods {
		for _, name := range o.containers(run, pod) {
			l := o.query
			l.Account = run.Account
			l.Namespace = pod.Metadata.Namespace
			l.Name = pod.Metadata.Name
			l.Container = name
			all = append(all, l)
		}
	}
	return all, err
}

func isPod(kind string) bool {
	return slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(kind))
}

// podsOf returns the pod that t names, the pods that match its selector, or the pods of the
// workload that it names.
func podsOf(ctx context.Context, run *fanout.Run, t target.Target) ([]target.ListedObject, error) {
	if t.Name == "" {
		pods, ok, err := target.List(ctx, run, t)
		if ok && len(pods) == 0 {
			run.Noticef("No resources found in %s namespace of %s.", cmp.Or(t.Namespace, "default"), run.Account)
		}
		return pods, err
	}
	out, ok, err := run.Query(ctx, "read "+t.DisplayName(), t.Operation(vedette.VerbGet))
	if !ok {
		return nil, err
	}
	var object target.ListedObject
	if len(out.Objects) != 1 || json.Unmarshal(out.Objects[0], &object) != nil {
		run.Failf("the cluster returned an invalid object for %s", t.DisplayName())
		return nil, nil
	}
	if isPod(t.Kind) {
		return []target.ListedObject{object}, nil
	}
	selector := selectorOf(object.Spec.Selector)
	if selector == "" {
		run.Failf("%s has no label selector for pods: name one of its pods", t.DisplayName())
		return nil, nil
	}
	pods, ok, err := target.List(ctx, run,
		target.Target{Kind: "pods", APIVersion: "v1", Namespace: object.Metadata.Namespace, Selector: selector})
	if ok && len(pods) == 0 {
		run.Failf("%s has no pods", t.DisplayName())
	}
	return pods, err
}

// selectorOf returns the selector of a workload, or of a Service, which has no matchLabels. It
// is empty if there is no selector, or an empty one.
func selectorOf(raw json.RawMessage) string {
	var s metav1.LabelSelector
	if json.Unmarshal(raw, &s) == nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 {
		if selector, err := metav1.LabelSelectorAsSelector(&s); err == nil {
			return selector.String()
		}
	}
	var plain map[string]string
	if json.Unmarshal(raw, &plain) == nil && len(plain) > 0 {
		return labels.SelectorFromSet(plain).String()
	}
	return ""
}

// defaultContainerAnnotation is kubectl's annotation for the default container of a pod.
const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// containers returns the containers of a pod whose logs are printed.
func (o *logOptions) containers(run *fanout.Run, pod target.ListedObject) []string {
	if o.query.Container != "" {
		return []string{o.query.Container}
	}
	var regular, all []string
	for _, c := range pod.Spec.InitContainers {
		all = append(all, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		regular, all = append(regular, c.Name), append(all, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, c.Name)
	}
	annotated := pod.Metadata.Annotations[defaultContainerAnnotation]
	switch {
	case o.allContainers:
		return all
	case annotated != "":
		return []string{annotated}
	case len(regular) == 0:
		return []string{""} // the agent chooses the container, or explains why it cannot
	case len(all) > 1:
		run.Noticef("Defaulted container %q of pod/%s in %s out of: %s", regular[0], pod.Metadata.Name, run.Account, strings.Join(all, ", "))
	}
	return regular[:1]
}
