package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

type nodeSummary struct {
	conditions
	Unschedulable           bool
	Version, OS, Kernel     string
	Architecture, Runtime   string
	AddressTypes, Addresses []string
}

func node() kindTable {
	return kindTable{
		resource: resource("", "v1", "Node", "nodes", false, "no"),
		fields: append(conditionFields(), fields("unschedulable", "spec.unschedulable", "version", "status.nodeInfo.kubeletVersion",
			"os", "status.nodeInfo.osImage", "kernel", "status.nodeInfo.kernelVersion", "architecture", "status.nodeInfo.architecture",
			"runtime", "status.nodeInfo.containerRuntimeVersion", "addressTypes", "status.addresses.*.type",
			"addresses", "status.addresses.*.address")...),
		table: newTable(columns("STATUS", "ROLES", "AGE", "VERSION", "INTERNAL-IP*", "EXTERNAL-IP*", "OS-IMAGE*", "KERNEL-VERSION*",
			"CONTAINER-RUNTIME*"),
			func(s *nodeSummary, o *vedette.Object, now time.Time) []string {
				return []string{s.state(), roles(o.Labels), ageSince(o.Created, now), s.Version, s.address("InternalIP"), s.address("ExternalIP"),
					cmp.Or(s.OS, "<unknown>"), s.kernel(), cmp.Or(s.Runtime, "<unknown>")}
			}),
	}
}

func (s *nodeSummary) state() string {
	state := "Unknown"
	switch s.status("Ready") {
	case "":
	case "True":
		state = "Ready"
	default:
		state = "NotReady"
	}
	if s.Unschedulable {
		state += ",SchedulingDisabled"
	}
	return state
}

func (s *nodeSummary) address(kind string) string {
	return cmp.Or(elementAt(s.Addresses, slices.Index(s.AddressTypes, kind)), none)
}

func (s *nodeSummary) kernel() string {
	kernel := cmp.Or(s.Kernel, "<unknown>")
	if s.Architecture != "" {
		kernel += " (" + s.Architecture + ")"
	}
	return kernel
}

func roles(labels map[string]string) string {
	var out []string
	for key, value := range labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok && role != "" {
			out = append(out, role)
		} else if key == "kubernetes.io/role" && value != "" {
			out = append(out, value)
		}
	}
	slices.Sort(out)
	return cmp.Or(strings.Join(slices.Compact(out), ","), none)
}

func namespace() kindTable {
	type summary struct{ Phase string }
	return kindTable{
		resource: resource("", "v1", "Namespace", "namespaces", false, "ns"),
		fields:   fields("phase", "status.phase"),
		table: newTable(columns("STATUS", "AGE"), func(s *summary, o *vedette.Object, now time.Time) []string {
			return []string{s.Phase, ageSince(o.Created, now)}
		}),
	}
}

func customResourceDefinition() kindTable {
	type summary struct{}
	return kindTable{
		resource: resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false, "crd", "crds"),
		fields: append(conditionFields(), fields("group", "spec.group", "kind", "spec.names.kind", "scope", "spec.scope",
			"versions", "spec.versions.*.name")...),
		table: newTable(columns("CREATED AT"), func(_ *summary, o *vedette.Object, _ time.Time) []string {
			return []string{time.Unix(o.Created, 0).UTC().Format(time.RFC3339)}
		}),
	}
}

// autoscaler has no column TARGETS, because the metrics of an autoscaler have five types and
// would take more bytes on the wire than the rest of the object.
func autoscaler() kindTable {
	type summary struct {
		Kind, Name   string
		Min          *int
		Max, Current int
	}
	return kindTable{
		resource: resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true, "hpa"),
		fields: append(conditionFields(),
			fields("kind", "spec.scaleTargetRef.kind", "name", "spec.scaleTargetRef.name", "min", "spec.minReplicas",
				"max", "spec.maxReplicas", "current", "status.currentReplicas", "desired", "status.desiredReplicas")...),
		table: newTable(columns("REFERENCE", "MINPODS", "MAXPODS", "REPLICAS", "AGE"),
			func(s *summary, o *vedette.Object, now time.Time) []string {
				minReplicas := "<unset>"
				if s.Min != nil {
					minReplicas = strconv.Itoa(*s.Min)
				}
				return []string{s.Kind + "/" + s.Name, minReplicas, strconv.Itoa(s.Max), strconv.Itoa(s.Current), ageSince(o.Created, now)}
			}),
	}
}

func disruptionBudget() kindTable {
	type summary struct {
		Min, Max any // a number or a percentage
		Allowed  int
	}
	return kindTable{
		resource: resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true, "pdb"),
		fields:   fields("min", "spec.minAvailable", "max", "spec.maxUnavailable", "allowed", "status.disruptionsAllowed"),
		table: newTable(columns("MIN AVAILABLE", "MAX UNAVAILABLE", "ALLOWED DISRUPTIONS", "AGE"),
			func(s *summary, o *vedette.Object, now time.Time) []string {
				return []string{formatLimit(s.Min), formatLimit(s.Max), strconv.Itoa(s.Allowed), ageSince(o.Created, now)}
			}),
	}
}

func formatLimit(v any) string {
	if v == nil {
		return "N/A"
	}
	return fmt.Sprint(v)
}
