package manifests

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/clouddriver/web"
)

// readinessInput is the part of an object that readiness depends on, for all kinds. docs/decisions/0064 says why
// kstatus does not decide it.
type readinessInput struct {
	Metadata struct {
		Generation        float64 `json:"generation"`
		DeletionTimestamp string  `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Type string `json:"type"`
	} `json:"spec"`
	Status struct {
		Phase              string          `json:"phase"`
		Message            string          `json:"message"`
		Reason             string          `json:"reason"`
		ObservedGeneration *float64        `json:"observedGeneration"`
		Conditions         []kubeCondition `json:"conditions"`
		LoadBalancer       struct {
			Ingress []json.RawMessage `json:"ingress"`
		} `json:"loadBalancer"`
	} `json:"status"`
}

// evaluateReadiness evaluates kinds that Clouddriver calls stable as soon as they exist.
// Accounts must enable it. For example, a stage that deploys a CustomResourceDefinition then
// waits until custom objects can be created.
func evaluateReadiness(kind vedette.Kind, manifest []byte) (manifestStatus, error) {
	var l readinessInput
	if err := exactjson.Unmarshal(manifest, &l, web.ObjectLimits); err != nil {
		return manifestStatus{}, fmt.Errorf("read the readiness of a %s: %w", kind, err)
	}
	if l.Metadata.DeletionTimestamp != "" {
		return stable().unstable("Waiting for the object to be deleted"), nil
	}
	if observed := l.Status.ObservedGeneration; observed != nil && *observed != l.Metadata.Generation {
		return stable().unstable(waitGeneration), nil
	}
	return readinessRule(kind)(&l), nil
}

func readinessRule(kind vedette.Kind) func(*readinessInput) manifestStatus {
	if !vedette.IsNativeGroup(kind.Group) {
		return customReadiness
	}
	switch kind.Name {
	case "CustomResourceDefinition":
		return crdReadiness
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
	return func(*readinessInput) manifestStatus { return stable() }
}

func (l *readinessInput) condition(conditionType string) kubeCondition {
	for _, c := range l.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return kubeCondition{}
}

func crdReadiness(l *readinessInput) manifestStatus {
	if names := l.condition("NamesAccepted"); names.Status == "False" {
		return stable().failed(cmp.Or(names.Message, "The names of the custom resource are taken"))
	}
	return stable().unstableIf(waitCheck{l.condition("Established").Status != "True",
		"Waiting for the custom resource definition to be established"})
}

func apiServiceReadiness(l *readinessInput) manifestStatus {
	c := l.condition("Available")
	return stable().unstableIf(waitCheck{c.Status != "True", cmp.Or(c.Message, "Waiting for the API service to be available")})
}

func claimReadiness(l *readinessInput) manifestStatus {
	if l.Status.Phase == "Lost" {
		return stable().failed("The persistent volume claim has lost its volume")
	}
	return stable().unstableIf(waitCheck{l.Status.Phase != "Bound", "Waiting for the persistent volume claim to be bound"})
}

// volumeReadiness treats unclaimed volumes as ready, because they wait for a claim.
func volumeReadiness(l *readinessInput) manifestStatus {
	if l.Status.Phase == "Failed" {
		return stable().failed(cmp.Or(l.Status.Message, "The persistent volume has failed"))
	}
	return stable().unstableIf(waitCheck{l.Status.Phase == "" || l.Status.Phase == "Pending",
		"Waiting for the persistent volume to be available"})
}

func namespaceReadiness(l *readinessInput) manifestStatus {
	return stable().unstableIf(
		waitCheck{l.Status.Phase == "Terminating", "Waiting for the namespace to be deleted"},
		waitCheck{l.Status.Phase != "Active", "Waiting for the namespace to be active"},
	)
}

func serviceReadiness(l *readinessInput) manifestStatus {
	if l.Spec.Type != "LoadBalancer" {
		return stable()
	}
	return addressReadiness(l)
}

func addressReadiness(l *readinessInput) manifestStatus {
	return stable().unstableIf(waitCheck{len(l.Status.LoadBalancer.Ingress) == 0, "Waiting for the load balancer to get an address"})
}

func budgetReadiness(l *readinessInput) manifestStatus {
	return stable().unstableIf(waitCheck{l.Status.ObservedGeneration == nil && l.Metadata.Generation > 0, waitGeneration})
}

// customReadiness reads the conditions of kstatus. Stalled and Reconciling exist only while
// they are true; Ready, or else Available, always exists. An object without these conditions
// is ready, because its controller does not use them.
func customReadiness(l *readinessInput) manifestStatus {
	if c := l.condition("Stalled"); c.Status == "True" {
		return stable().failed(c.messageOr("The custom resource is stalled"))
	}
	if c := l.condition("Reconciling"); c.Status == "True" {
		return stable().unstable(c.messageOr("Waiting for the custom resource to be reconciled"))
	}
	for _, conditionType := range []string{"Ready", "Available"} {
		c := l.condition(conditionType)
		switch {
		case c.Type == "":
			continue
		case c.ObservedGeneration != 0 && c.ObservedGeneration < l.Metadata.Generation:
			return stable().unstable(waitGeneration)
		}
		return stable().unstableIf(waitCheck{c.Status != "True",
			c.messageOr("Waiting for the custom resource to be " + map[string]string{"Ready": "ready", "Available": "available"}[conditionType])})
	}
	return stable()
}

// messageOr returns the condition's message, reason, or else fallback.
func (c kubeCondition) messageOr(fallback string) string {
	return cmp.Or(c.Message, c.Reason, fallback)
}
