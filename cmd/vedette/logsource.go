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

// sources finds the logs that are meant in one account.
func (o *logOptions) sources(ctx context.Context, h *hand, one aim) ([]client.LogQuery, error) {
	if one.account != "" && one.account != h.account {
		return nil, nil
	}
	pods, err := podsOf(ctx, h, one)
	var all []client.LogQuery
	for _, pod := range pods {
		for _, container := range o.containers(h, pod) {
			l := o.LogQuery
			l.Account, l.Namespace, l.Pod, l.Container = h.account, pod.Metadata.Namespace, pod.Metadata.Name, container
			all = append(all, l)
		}
	}
	return all, err
}

func isPod(kind string) bool {
	return slices.Contains([]string{"pod", "pods", "po"}, strings.ToLower(kind))
}

// podsOf finds a pod, the pods with some labels, or those of a workload.
func podsOf(ctx context.Context, h *hand, one aim) ([]listed, error) {
	if one.name == "" {
		pods, ok, err := h.list(ctx, one)
		if ok && len(pods) == 0 {
			h.warn("No resources found in %s namespace of %s.", or(one.namespace, "default"), h.account)
		}
		return pods, err
	}
	out, ok, err := h.must(ctx, "read "+one.label(), one.on(vedette.VerbGet))
	if !ok {
		return nil, err
	}
	h.done-- // no log is read yet
	var object struct {
		listed
		Spec struct{ Selector json.RawMessage }
	}
	if len(out.Objects) != 1 || json.Unmarshal(out.Objects[0], &object) != nil {
		h.fail("what the cluster says of %s makes no sense", one.label())
		return nil, nil
	}
	if isPod(one.kind) {
		var pod listed
		err := json.Unmarshal(out.Objects[0], &pod)
		return []listed{pod}, err
	}
	selector := selectorOf(object.Spec.Selector)
	if selector == "" {
		h.fail("%s chooses no pods by labels: name one of its pods", one.label())
		return nil, nil
	}
	pods, ok, err := h.list(ctx, aim{kind: "pods", apiVersion: "v1", namespace: object.Metadata.Namespace, selector: selector})
	if ok && len(pods) == 0 {
		h.fail("%s has no pods", one.label())
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

// defaultContainer is the annotation of a pod that says whose logs are meant.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// containers are those of a pod whose logs are meant.
func (o *logOptions) containers(h *hand, pod listed) []string {
	if o.Container != "" {
		return []string{o.Container}
	}
	var main, all []string
	for _, c := range pod.Spec.InitContainers {
		all = append(all, c.Name)
	}
	for _, c := range pod.Spec.Containers {
		main, all = append(main, c.Name), append(all, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, c.Name)
	}
	chosen := pod.Metadata.Annotations[defaultContainer]
	switch {
	case o.allContainers:
		return all
	case chosen != "":
		return []string{chosen}
	case len(main) == 0:
		return []string{""} // the agent knows, or says why not
	case len(all) > 1:
		h.warn("Defaulted container %q of pod/%s in %s out of: %s", main[0], pod.Metadata.Name, h.account, strings.Join(all, ", "))
	}
	return main[:1]
}
