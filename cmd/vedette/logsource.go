package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/client"
)

// findLogs finds the logs that are meant in one account.
func (o *logOptions) findLogs(ctx context.Context, run *accountRun, t target) ([]client.LogQuery, error) {
	if t.account != "" && t.account != run.account {
		return nil, nil
	}
	pods, err := podsOf(ctx, run, t)
	var all []client.LogQuery
	for _, pod := range pods {
		for _, name := range o.containers(run, pod) {
			l := o.LogQuery
			l.Account, l.Namespace, l.Pod, l.Container = run.account, pod.Metadata.Namespace, pod.Metadata.Name, name
			all = append(all, l)
		}
	}
	return all, err
}

func isPod(kind string) bool {
	return slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(kind))
}

// podsOf finds a pod, the pods with some labels, or those of a workload.
func podsOf(ctx context.Context, run *accountRun, t target) ([]listedObject, error) {
	if t.name == "" {
		pods, ok, err := run.list(ctx, t)
		if ok && len(pods) == 0 {
			run.warnf("No resources found in %s namespace of %s.", orDefault(t.namespace, "default"), run.account)
		}
		return pods, err
	}
	out, ok, err := run.query(ctx, "read "+t.displayName(), t.operation(vedette.VerbGet))
	if !ok {
		return nil, err
	}
	var object struct {
		listedObject
		Spec struct{ Selector json.RawMessage }
	}
	if len(out.Objects) != 1 || json.Unmarshal(out.Objects[0], &object) != nil {
		run.failf("what the cluster says of %s makes no sense", t.displayName())
		return nil, nil
	}
	if isPod(t.kind) {
		var pod listedObject
		err := json.Unmarshal(out.Objects[0], &pod)
		return []listedObject{pod}, err
	}
	selector := selectorOf(object.Spec.Selector)
	if selector == "" {
		run.failf("%s chooses no pods by labels: name one of its pods", t.displayName())
		return nil, nil
	}
	pods, ok, err := run.list(ctx, target{kind: "pods", apiVersion: "v1", namespace: object.Metadata.Namespace, selector: selector})
	if ok && len(pods) == 0 {
		run.failf("%s has no pods", t.displayName())
	}
	return pods, err
}

// selectorOf reads the selector of a workload, or of a Service, which is written
// without matchLabels. It is empty where there is none that chooses anything.
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

// defaultContainerAnnotation is the annotation of a pod that says whose logs are meant.
const defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"

// containers are those of a pod whose logs are meant.
func (o *logOptions) containers(run *accountRun, pod listedObject) []string {
	if o.Container != "" {
		return []string{o.Container}
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
		return []string{""} // the agent knows, or says why not
	case len(all) > 1:
		run.warnf("Defaulted container %q of pod/%s in %s out of: %s", regular[0], pod.Metadata.Name, run.account, strings.Join(all, ", "))
	}
	return regular[:1]
}
