package attributes

import (
	"encoding/json"
	"strings"

	"github.com/vedette-io/vedette"
)

const (
	ignoreAnnotation        = "caching.spinnaker.io/ignore"
	applicationAnnotation   = "moniker.spinnaker.io/application"
	loadBalancersAnnotation = "traffic.spinnaker.io/load-balancers"
)

// FromObject returns the attributes of an object. It reads the header and the summary, not the body. What
// it cannot read is left out, because one invalid object must not break a list of thousands.
func FromObject(o *vedette.Object) Attributes {
	a := Attributes{APIVersion: o.APIVersion, Created: o.Created, Owner: o.Owner,
		Ignored: isTrue(o.Annotations[ignoreAnnotation]), Managed: vedette.UnquoteAnnotation(o.Annotations[applicationAnnotation]) != ""}
	if text := o.Annotations[loadBalancersAnnotation]; text != "" {
		_ = json.Unmarshal([]byte(text), &a.LoadBalancers)
	}
	if !vedette.IsNativeGroup(o.Kind.Group) {
		a.Labels = o.Labels
		return a
	}
	switch o.Kind.Name {
	case "Pod":
		a.readPod(o.Summary)
		return a
	case "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob":
		a.readWorkload(o.Kind, o.Summary)
	case "Service":
		a.readService(o.Summary)
	case "Ingress":
		a.readIngress(o.Summary)
	}
	a.Labels = o.Labels
	return a
}

// isTrue accepts what Clouddriver does: the word as JSON, also as a JSON string.
func isTrue(annotation string) bool {
	return strings.Trim(strings.TrimSpace(annotation), `"`) == "true"
}

// IsClusterMember reports whether objects of a kind are the server groups and server group
// managers of which Spinnaker's clusters consist.
func IsClusterMember(kind vedette.Kind) bool {
	if !vedette.IsNativeGroup(kind.Group) {
		return false
	}
	switch kind.Name {
	case "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob":
		return true
	}
	return false
}

// IsApplicationMember reports whether objects of a kind belong to an application without being in
// one of its clusters: load balancers and security groups.
func IsApplicationMember(kind vedette.Kind) bool {
	if !vedette.IsNativeGroup(kind.Group) {
		return false
	}
	switch kind.Name {
	case "Service", "Ingress", "NetworkPolicy":
		return true
	}
	return false
}

func (a *Attributes) readPod(summary []byte) {
	var ready []byte
	for name, value := range members(summary) {
		switch string(name) {
		case "phase":
			a.Phase = text(value)
		case "_statuses":
			for _, status := range texts(value) {
				a.Containers = append(a.Containers, Container{Name: status})
			}
		case "ready":
			ready = value
		}
	}
	i := 0
	for value := range elements(ready) {
		if i < len(a.Containers) {
			a.Containers[i].Ready = string(value) == "true"
		}
		i++
	}
}

func (a *Attributes) readWorkload(kind vedette.Kind, summary []byte) {
	var images, initImages []string
	for name, value := range members(summary) {
		switch string(name) {
		case "replicas":
			if kind.Name != "DaemonSet" { // whose replicas are in its status
				a.Replicas = integer(value)
			}
		case "images":
			images = texts(value)
		case "_initImages":
			initImages = texts(value)
		case "_templateLabels":
			a.TemplateLabels = pairs(value)
		case "_service":
			a.Services = distinct(text(value))
		}
	}
	a.Images = distinct(append(images, initImages...)...)
}

func (a *Attributes) readService(summary []byte) {
	for name, value := range members(summary) {
		if string(name) == "selector" {
			a.Selector = pairs(value)
		}
	}
}

func (a *Attributes) readIngress(summary []byte) {
	var services []string
	for name, value := range members(summary) {
		switch string(name) {
		case "_backend", "_oldBackend":
			services = append(services, text(value))
		case "_backends", "_oldBackends":
			for paths := range elements(value) { // of a rule
				services = append(services, texts(paths)...)
			}
		}
	}
	a.Services = distinct(services...)
}

// distinct returns the texts that are not empty, once each, in their order; nil if there are none.
func distinct(texts ...string) []string {
	if len(texts) == 1 && texts[0] != "" {
		return texts
	}
	var out []string
	seen := make(map[string]bool, len(texts))
	for _, s := range texts {
		if s != "" && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
