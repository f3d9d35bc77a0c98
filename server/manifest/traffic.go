package manifest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// annotLoadBalancers lists the load balancers of a workload: ["service web"].
const annotLoadBalancers = "traffic.spinnaker.io/load-balancers"

// serviceKind is the only kind that Clouddriver supports as load balancer.
var serviceKind = vedette.Kind{Name: "Service"}

// LoadBalancers returns the Services to enable or disable a live target for: the requested
// ones, or else those in its annotation.
func LoadBalancers(target Manifest, requested []string) ([]vedette.Key, error) {
	if len(requested) == 0 {
		requested = annotatedLoadBalancers(target)
	}
	var keys []vedette.Key
	for _, name := range requested {
		key, err := parseLoadBalancer(target, name, "Failed to perform operation with load balancer '%s'. "+
			"Load balancers must be specified in the form '{kind} {name}', e.g. 'service my-service'")
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// parseLoadBalancer parses the full name of a load balancer in the target's namespace.
func parseLoadBalancer(target Manifest, name, malformed string) (vedette.Key, error) {
	kind, object, ok := strings.Cut(name, " ")
	if !ok || kind == "" || object == "" || strings.Contains(object, " ") {
		return vedette.Key{}, vedette.Errorf(vedette.Invalid, malformed, name)
	}
	if written := KindName(vedette.ParseKind(kind)); written != "service" {
		return vedette.Key{}, vedette.Errorf(vedette.Invalid, "No support for load balancing via %s exists in Spinnaker", written)
	}
	return vedette.Key{Kind: serviceKind, Namespace: target.Namespace(), Name: object}, nil
}

// annotatedLoadBalancers returns the load balancers in the annotation. An invalid annotation
// counts as none.
func annotatedLoadBalancers(m Manifest) []string {
	var names []string
	if json.Unmarshal([]byte(m.Annotation(annotLoadBalancers)), &names) != nil {
		return nil
	}
	return names
}

func annotateTraffic(m Manifest, services []string) error {
	if len(services) == 0 {
		return nil
	}
	if m.hasAnnotation(annotLoadBalancers) {
		if existing := annotatedLoadBalancers(m); !slices.Equal(existing, services) {
			return vedette.Errorf(vedette.Invalid, "Manifest already has %s annotation set to [%s]. Failed attempting to set it to [%s].",
				annotLoadBalancers, strings.Join(existing, ", "), strings.Join(services, ", "))
		}
		return nil
	}
	raw, err := json.Marshal(services)
	value := string(raw)
	addAnnotation(m.metadata(), annotLoadBalancers, &value)
	return err
}

// attachLoadBalancers adds the labels that the load balancers select to a workload's pods.
func (p *planner) attachLoadBalancers(ctx context.Context, m Manifest) error {
	for _, name := range annotatedLoadBalancers(m) {
		key, err := parseLoadBalancer(m, name, "Failed to attach load balancer '%s'. "+
			"Load balancers must be specified in the form '{kind} {name}', e.g. 'service my-service'.")
		if err != nil {
			return err
		}
		service, err := findService(ctx, p.cluster, key, p.manifests)
		if err != nil {
			return err
		}
		p.reportf("Attaching load balancer %s to %s", service.FullName(), m.FullName())
		if err := attachService(m, service); err != nil {
			return err
		}
	}
	return nil
}

// findService returns a Service, preferably from the same deployment.
func findService(ctx context.Context, c Cluster, key vedette.Key, manifests []Manifest) (Manifest, error) {
	for _, m := range manifests {
		if KindName(m.Kind()) == "service" && m.Namespace() == key.Namespace && m.Name() == key.Name {
			return m, nil
		}
	}
	live, err := c.Get(ctx, "v1", "Service", key.Namespace, key.Name)
	if vedette.KindOf(err) == vedette.NotFound {
		return nil, vedette.Errorf(vedette.Invalid, "Load balancer service %s does not exist", key.Name)
	}
	return live, err
}

func attachService(m, service Manifest) error {
	selector, err := serviceSelector(service)
	if err != nil {
		return err
	}
	if len(selector) == 0 {
		return vedette.Errorf(vedette.Invalid, "Service must have a non-empty selector in order to be attached to a workload")
	}
	labels := ensureObject(podMetadata(m), "labels")
	for key := range selector {
		if _, exists := labels[key]; exists {
			return vedette.Errorf(vedette.Invalid, "Service selector must have no label keys in common with target workload")
		}
	}
	for key, value := range selector {
		labels[key] = value
	}
	return nil
}

// podMetadata returns the object whose labels a Service selects: the metadata of a workload's
// template, or else of the object.
func podMetadata(m Manifest) object {
	if template := m.templateMetadata(); template != nil {
		return template
	}
	return m.metadata()
}

func serviceSelector(service Manifest) (map[string]string, error) {
	if version := service.APIVersion(); version != "v1" {
		return nil, vedette.Errorf(vedette.Invalid, "No services with version %s supported", version)
	}
	selector, _ := nested(object(service), "spec", "selector").(object)
	return stringMap(selector), nil
}
