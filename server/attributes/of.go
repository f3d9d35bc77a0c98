package attributes

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

const (
	ignoreAnnotation        = "caching.spinnaker.io/ignore"
	applicationAnnotation   = "moniker.spinnaker.io/application"
	loadBalancersAnnotation = "traffic.spinnaker.io/load-balancers"
)

// Of returns the attributes of an object. It reads the header and the summary, not the body. What
// it cannot read is left out, because one invalid object must not break a list of thousands.
func Of(o *vedette.Object) Attributes {
	a := Attributes{APIVersion: o.APIVersion, Created: o.Created, Owner: o.Owner,
		Ignored: isTrue(o.Annotations[ignoreAnnotation]), Managed: o.Annotations[applicationAnnotation] != ""}
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
	var s struct {
		Phase    string
		Statuses []string
		Ready    []bool
	}
	_ = json.Unmarshal(summary, &s)
	a.Phase = s.Phase
	for i, name := range s.Statuses {
		a.Containers = append(a.Containers, Container{name, i < len(s.Ready) && s.Ready[i]})
	}
}

func (a *Attributes) readWorkload(kind vedette.Kind, summary []byte) {
	var s struct {
		Replicas           int64
		Images, InitImages []string
		TemplateLabels     map[string]string
		Service            string
	}
	_ = json.Unmarshal(summary, &s)
	if kind.Name != "DaemonSet" { // whose replicas are in its status
		a.Replicas = s.Replicas
	}
	a.Images = distinct(slices.Concat(s.Images, s.InitImages))
	a.TemplateLabels = s.TemplateLabels
	a.Services = distinct([]string{s.Service})
}

func (a *Attributes) readService(summary []byte) {
	var s struct{ Selector map[string]string }
	_ = json.Unmarshal(summary, &s)
	a.Selector = s.Selector
}

func (a *Attributes) readIngress(summary []byte) {
	var s struct {
		Backend, OldBackend   string
		Backends, OldBackends [][]string // by rule and path
	}
	_ = json.Unmarshal(summary, &s)
	names := slices.Concat(slices.Concat(s.Backends...), slices.Concat(s.OldBackends...))
	a.Services = distinct(append([]string{s.Backend, s.OldBackend}, names...))
}

// distinct returns the texts that are not empty, once each, in their order; nil if there are none.
func distinct(texts []string) []string {
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
