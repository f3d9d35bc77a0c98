package views

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// resource describes a kind of Kubernetes' own. Its singular is its name in
// lower case, as it is for all of them.
func resource(group, version, name, plural string, namespaced bool, short ...string) vedette.Resource {
	return vedette.Resource{Kind: vedette.Kind{Group: group, Name: name}, Version: version, Plural: plural,
		Singular: strings.ToLower(name), ShortNames: short, Namespaced: namespaced}
}

// template is what is lifted of a Pod template.
type template struct {
	Containers []string
	Images     []string
	Selector   selector
}

func templateFields(path string) []vedette.ProjectionField {
	return fields("containers", path+".spec.containers.*.name", "images", path+".spec.containers.*.image")
}

// wide returns the cells for CONTAINERS, IMAGES and SELECTOR.
func (t template) wide() []string {
	return append(t.contents(), or(t.Selector.String(), none))
}

func (t template) contents() []string {
	return []string{strings.Join(t.Containers, ","), strings.Join(t.Images, ",")}
}

type workloadSummary struct {
	template
	Replicas  int // asked for
	Current   int
	Ready     int
	Updated   int
	Available int
}

func deployment() kindView {
	return kindView{
		resource: resource("apps", "v1", "Deployment", "deployments", true, "deploy"),
		fields: append(append(templateFields("spec.template"), conditionFields()...), fields(
			"replicas", "spec.replicas", "paused", "spec.paused", "current", "status.replicas", "ready", "status.readyReplicas",
			"updated", "status.updatedReplicas", "available", "status.availableReplicas", "selector", "spec.selector")...),
		view: show(columns("READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS*", "IMAGES*", "SELECTOR*"),
			func(s *workloadSummary, o *vedette.Object, now time.Time) []string {
				return append([]string{fmt.Sprintf("%d/%d", s.Ready, s.Replicas), strconv.Itoa(s.Updated),
					strconv.Itoa(s.Available), since(o.Created, now)}, s.wide()...)
			}),
	}
}

func replicaSet() kindView {
	return kindView{
		resource: resource("apps", "v1", "ReplicaSet", "replicasets", true, "rs"),
		fields: append(templateFields("spec.template"), fields("replicas", "spec.replicas", "current", "status.replicas",
			"ready", "status.readyReplicas", "available", "status.availableReplicas", "selector", "spec.selector")...),
		view: show(columns("DESIRED", "CURRENT", "READY", "AGE", "CONTAINERS*", "IMAGES*", "SELECTOR*"),
			func(s *workloadSummary, o *vedette.Object, now time.Time) []string {
				return append([]string{strconv.Itoa(s.Replicas), strconv.Itoa(s.Current), strconv.Itoa(s.Ready),
					since(o.Created, now)}, s.wide()...)
			}),
	}
}

func statefulSet() kindView {
	return kindView{
		resource: resource("apps", "v1", "StatefulSet", "statefulsets", true, "sts"),
		fields: append(templateFields("spec.template"), fields("replicas", "spec.replicas", "current", "status.replicas",
			"ready", "status.readyReplicas", "updated", "status.updatedReplicas", "available", "status.availableReplicas")...),
		view: show(columns("READY", "AGE", "CONTAINERS*", "IMAGES*"),
			func(s *workloadSummary, o *vedette.Object, now time.Time) []string {
				return append([]string{fmt.Sprintf("%d/%d", s.Ready, s.Replicas), since(o.Created, now)}, s.contents()...)
			}),
	}
}

func daemonSet() kindView {
	type summary struct {
		workloadSummary
		NodeSelector map[string]string
	}
	return kindView{
		resource: resource("apps", "v1", "DaemonSet", "daemonsets", true, "ds"),
		fields: append(templateFields("spec.template"), fields("replicas", "status.desiredNumberScheduled",
			"current", "status.currentNumberScheduled", "ready", "status.numberReady", "updated", "status.updatedNumberScheduled",
			"available", "status.numberAvailable", "nodeSelector", "spec.template.spec.nodeSelector", "selector", "spec.selector")...),
		view: show(columns("DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE SELECTOR", "AGE", "CONTAINERS*", "IMAGES*", "SELECTOR*"),
			func(s *summary, o *vedette.Object, now time.Time) []string {
				return append([]string{strconv.Itoa(s.Replicas), strconv.Itoa(s.Current), strconv.Itoa(s.Ready), strconv.Itoa(s.Updated),
					strconv.Itoa(s.Available), labels(s.NodeSelector), since(o.Created, now)}, s.wide()...)
			}),
	}
}
