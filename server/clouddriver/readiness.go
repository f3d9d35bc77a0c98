package clouddriver

import (
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
)

// living is what readiness looks at, of any kind.
type living struct {
	Metadata struct {
		Generation        float64
		DeletionTimestamp string
	}
	Spec   struct{ Type string }
	Status struct {
		Phase, Message, Reason string
		ObservedGeneration     *float64
		Conditions             []kubeCondition
		LoadBalancer           struct{ Ingress []json.RawMessage }
	}
}

// readinessOf judges, where an account asks for it, the kinds that Clouddriver
// calls stable as soon as they are there: a stage that deploys a
// CustomResourceDefinition waits until custom objects can be made.
func readinessOf(kind vedette.Kind, manifest []byte) (status, error) {
	var l living
	if err := json.Unmarshal(manifest, &l); err != nil {
		return status{}, fmt.Errorf("read the readiness of a %s: %w", kind, err)
	}
	if l.Metadata.DeletionTimestamp != "" {
		return stable().unstable("Waiting for the object to be gone: it is being deleted"), nil
	}
	if seen := l.Status.ObservedGeneration; seen != nil && *seen != l.Metadata.Generation {
		return stable().unstable(waitGeneration), nil
	}
	return readinessRuleOf(kind)(&l), nil
}

func readinessRuleOf(kind vedette.Kind) func(*living) status {
	if !vedette.IsNativeGroup(kind.Group) {
		return customReadiness
	}
	switch kind.Name {
	case "CustomResourceDefinition":
		return definitionReadiness
	case "APIService":
		return apiServiceReadiness
	case "PersistentVolumeClaim":
		return claimReadiness
	case "PersistentVolume":
		return volumeReadiness
	case "Namespace":
		return namespaceReadiness
	case "Service":
		return serviceReadiness
	case "Ingress":
		return addressReadiness
	case "PodDisruptionBudget":
		return budgetReadiness
	}
	return func(*living) status { return stable() }
}

func (l *living) condition(sort string) kubeCondition {
	for _, c := range l.Status.Conditions {
		if c.Type == sort {
			return c
		}
	}
	return kubeCondition{}
}

func definitionReadiness(l *living) status {
	if names := l.condition("NamesAccepted"); names.Status == "False" {
		return stable().failed(or(names.Message, "The names of the custom resource are taken"))
	}
	return stable().settle(check{l.condition("Established").Status != "True", "Waiting for the custom resource definition to be established"})
}

func apiServiceReadiness(l *living) status {
	c := l.condition("Available")
	return stable().settle(check{c.Status != "True", or(c.Message, "Waiting for the API service to be available")})
}

func claimReadiness(l *living) status {
	if l.Status.Phase == "Lost" {
		return stable().failed("The persistent volume claim has lost its volume")
	}
	return stable().settle(check{l.Status.Phase != "Bound", "Waiting for the persistent volume claim to be bound"})
}

// volumeReadiness knows volumes that nobody claims as ready: they are there to
// be claimed.
func volumeReadiness(l *living) status {
	if l.Status.Phase == "Failed" {
		return stable().failed(or(l.Status.Message, "The persistent volume has failed"))
	}
	return stable().settle(check{l.Status.Phase == "" || l.Status.Phase == "Pending", "Waiting for the persistent volume to be available"})
}

func namespaceReadiness(l *living) status {
	return stable().settle(
		check{l.Status.Phase == "Terminating", "Waiting for the namespace to be gone: it is being deleted"},
		check{l.Status.Phase != "Active", "Waiting for the namespace to be active"},
	)
}

func serviceReadiness(l *living) status {
	if l.Spec.Type != "LoadBalancer" {
		return stable()
	}
	return addressReadiness(l)
}

func addressReadiness(l *living) status {
	return stable().settle(check{len(l.Status.LoadBalancer.Ingress) == 0, "Waiting for the load balancer to get an address"})
}

func budgetReadiness(l *living) status {
	return stable().settle(check{l.Status.ObservedGeneration == nil && l.Metadata.Generation > 0, waitGeneration})
}

// customReadiness reads conditions as kstatus does: Stalled and Reconciling are
// there while something is wrong or under way, Ready (or else Available) always.
// Whose author writes none of them is ready.
func customReadiness(l *living) status {
	if c := l.condition("Stalled"); c.Status == "True" {
		return stable().failed(c.told("The custom resource is stalled"))
	}
	if c := l.condition("Reconciling"); c.Status == "True" {
		return stable().unstable(c.told("Waiting for the custom resource to be reconciled"))
	}
	for _, sort := range []string{"Ready", "Available"} {
		c := l.condition(sort)
		switch {
		case c.Type == "":
			continue
		case c.ObservedGeneration != 0 && c.ObservedGeneration < l.Metadata.Generation:
			return stable().unstable(waitGeneration)
		}
		return stable().settle(check{c.Status != "True", c.told("Waiting for the custom resource to be " + map[string]string{"Ready": "ready", "Available": "available"}[sort])})
	}
	return stable()
}

// told is what a condition says, or else something instead.
func (c kubeCondition) told(instead string) string { return or(c.Message, or(c.Reason, instead)) }
