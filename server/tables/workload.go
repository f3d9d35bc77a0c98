package tables

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// resource returns a resource of Kubernetes. Its singular is the kind in lower case.
func resource(group, version, name, plural string, namespaced bool, short ...string) vedette.Resource {
	return vedette.Resource{Kind: vedette.Kind{Group: group, Name: name}, Version: version, Plural: plural,
		Singular: strings.ToLower(name), ShortNames: short, Namespaced: namespaced}
}

type podTemplate struct {
	Containers []string
	Images     []string
	Selector   selector
}

func templateFields(path string) []vedette.ProjectionField {
	return fields("containers", path+".spec.containers.*.name", "images", path+".spec.containers.*.image",
		"_initImages", path+".spec.initContainers.*.image", "_templateLabels", path+".metadata.labels")
}

// wideCells returns the cells for CONTAINERS, IMAGES and SELECTOR.
func (t podTemplate) wideCells() []string {
	return append(t.containerCells(), cmp.Or(t.Selector.String(), none))
}

func (t podTemplate) containerCells() []string {
	return []string{strings.Join(t.Containers, ","), strings.Join(t.Images, ",")}
}

type workloadSummary struct {
	podTemplate
	Replicas  int // desired
	Current   int
	Ready     int
	Updated   int
	Available int
}

func deployment() kindTable {
	return kindTable{
		resource: resource("apps", "v1", "Deployment", "deployments", true, "deploy"),
		fields: append(append(templateFields("spec.template"), conditionFields()...), fields(
			"replicas", "spec.replicas", "paused", "spec.paused", "current", "status.replicas", "ready", "status.readyReplicas",
			"updated", "status.updatedReplicas", "available", "status.availableReplicas", "selector", "spec.selector")...),
		table: newTable(columns("READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS*", "IMAGES*", "SELECTOR*"),
			func(s *workloadSummary, o *vedette.Object, now time.Time) []string {
				return append([]string{fmt.Sprintf("%d/%d", s.Ready, s.Replicas), strconv.Itoa(s.Updated),
					strconv.Itoa(s.Available), ageSince(o.Created, now)}, s.wideCells()...)
			}),
	}
}

func replicaSet() kindTable {
	return kindTable{
		resource: resource("apps", "v1", "ReplicaSet", "replicasets", true, "rs"),
		fields: append(templateFields("spec.template"), fields("replicas", "spec.replicas", "current", "status.replicas",
			"ready", "status.readyReplicas", "available", "status.availableReplicas", "selector", "spec.selector")...),
		table: newTable(columns("DESIRED", "CURRENT", "READY", "AGE", "CONTAINERS*", "IMAGES*", "SELECTOR*"),
			func(s *workloadSummary, o *vedette.Object, now time.Time) []string {
				return append([]string{strconv.Itoa(s.Replicas), strconv.Itoa(s.Current), strconv.Itoa(s.Ready),
					ageSince(o.Created, now)}, s.wideCells()...)
			}),
	}
}

func statefulSet() kindTable {
	return kindTable{
		resource: resource("apps", "v1", "StatefulSet", "statefulsets", true, "sts"),
		fields: append(templateFields("spec.template"), fields("replicas", "spec.replicas", "_service", "spec.serviceName",
			"current", "status.replicas", "ready", "status.readyReplicas", "updated", "status.updatedReplicas",
			"available", "status.availableReplicas")...),
		table: newTable(columns("READY", "AGE", "CONTAINERS*", "IMAGES*"),
			func(s *workloadSummary, o *vedette.Object, now time.Time) []string {
				return append([]string{fmt.Sprintf("%d/%d", s.Ready, s.Replicas), ageSince(o.Created, now)}, s.containerCells()...)
			}),
	}
}

func daemonSet() kindTable {
	type summary struct {
		workloadSummary
		NodeSelector map[string]string
	}
	return kindTable{
		resource: resource("apps", "v1", "DaemonSet", "daemonsets", true, "ds"),
		fields: append(templateFields("spec.template"), fields("replicas", "status.desiredNumberScheduled",
			"current", "status.currentNumberScheduled", "ready", "status.numberReady", "updated", "status.updatedNumberScheduled",
			"available", "status.numberAvailable", "nodeSelector", "spec.template.spec.nodeSelector", "selector", "spec.selector")...),
		table: newTable(columns("DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE SELECTOR", "AGE", "CONTAINERS*", "IMAGES*",
			"SELECTOR*"),
			func(s *summary, o *vedette.Object, now time.Time) []string {
				return append([]string{strconv.Itoa(s.Replicas), strconv.Itoa(s.Current), strconv.Itoa(s.Ready), strconv.Itoa(s.Updated),
					strconv.Itoa(s.Available), formatLabels(s.NodeSelector), ageSince(o.Created, now)}, s.wideCells()...)
			}),
	}
}
