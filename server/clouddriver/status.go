package clouddriver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
)

// condition is one of the four answers that a status gives.
type condition struct {
	State   bool   `json:"state"`
	Message string `json:"message,omitempty"`
}

// status is how Orca knows that a deployment is done: stable, or failed.
type status struct {
	Stable    condition `json:"stable"`
	Failed    condition `json:"failed"`
	Paused    condition `json:"paused"`
	Available condition `json:"available"`
}

func stable() status {
	return status{Stable: condition{State: true}, Available: condition{State: true}}
}

func (s status) unstable(message string) status {
	s.Stable = condition{false, message}
	return s
}

func (s status) unavailable(message string) status {
	s.Available = condition{false, message}
	return s
}

func (s status) failed(message string) status {
	s.Failed = condition{true, message}
	return s
}

// workload is what the rules look at, of any kind.
type workload struct {
	APIVersion string
	Metadata   struct{ Generation float64 }
	Spec       struct {
		Replicas       float64
		Completions    *float64
		UpdateStrategy struct {
			Type          string
			RollingUpdate *struct{ Partition float64 }
		}
	}
	Status *workloadStatus
}

type workloadStatus struct {
	Phase              string
	ObservedGeneration float64
	Conditions         []kubeCondition

	Replicas, FullyLabeledReplicas, ReadyReplicas, AvailableReplicas, CurrentReplicas float64
	UpdatedReplicas                                                                   *float64

	DesiredNumberScheduled, CurrentNumberScheduled, UpdatedNumberScheduled, NumberAvailable, NumberReady float64

	CurrentRevision, UpdateRevision string
	Succeeded                       float64
	DesiredReplicas                 float64
}

// kubeCondition is an entry of an object's status.conditions.
type kubeCondition struct {
	Type, Status, Reason, Message string
	ObservedGeneration            float64
}

// is compares without case, as Clouddriver does.
func (c kubeCondition) is(sort, status string) bool {
	return strings.EqualFold(c.Type, sort) && strings.EqualFold(c.Status, status)
}

// judge tells the status of a manifest: as Clouddriver does and, where
// readiness counts too, of the other kinds by readinessOf.
func judge(kind vedette.Kind, manifest []byte, readiness bool) (status, error) {
	if readiness && ruleOf(kind) == nil {
		return readinessOf(kind, manifest)
	}
	return statusOf(kind, manifest)
}

// statusOf judges a manifest as Clouddriver does. Kinds without a rule are
// always stable. The error is vedette.Invalid for a version of a workload that
// Clouddriver does not support, though the rules would do.
func statusOf(kind vedette.Kind, manifest []byte) (status, error) {
	rule := ruleOf(kind)
	if rule == nil {
		return stable(), nil
	}
	var w workload
	if err := json.Unmarshal(manifest, &w); err != nil {
		return status{}, fmt.Errorf("read the status of a %s: %w", kind, err)
	}
	switch kind.Name {
	case "Deployment", "DaemonSet", "StatefulSet":
		if w.APIVersion != "apps/v1" {
			return status{}, vedette.Errorf(vedette.Invalid, "No %s is supported at api version %s", kindName(kind), w.APIVersion)
		}
	}
	if kind.Name == "StatefulSet" && w.Spec.UpdateStrategy.Type == "OnDelete" {
		return stable(), nil // it never moves by itself, with or without a status
	}
	if w.Status == nil {
		return stable().unstable("No status reported yet").unavailable("No availability reported"), nil
	}
	return rule(&w), nil
}

func ruleOf(kind vedette.Kind) func(*workload) status {
	if !vedette.IsNativeGroup(kind.Group) {
		return nil
	}
	switch kind.Name {
	case "Deployment":
		return deploymentStatus
	case "ReplicaSet":
		return replicaSetStatus
	case "DaemonSet":
		return daemonSetStatus
	case "StatefulSet":
		return statefulSetStatus
	case "Job":
		return jobStatus
	case "CronJob":
		return func(*workload) status { return stable() }
	case "Pod":
		return podStatus
	case "HorizontalPodAutoscaler":
		return autoscalerStatus
	}
	return nil
}

const (
	waitGeneration = "Waiting for status generation to match updated object generation"
	waitAvailable  = "Waiting for all replicas to be available"
	waitReady      = "Waiting for all replicas to be ready"
)

// check is one line of a rule: what is waited for, and whether it is.
type check struct {
	waits   bool
	message string
}

// first returns the message of the first line that still waits, "" where none
// does.
func first(checks ...check) string {
	for _, c := range checks {
		if c.waits {
			return c.message
		}
	}
	return ""
}

// settle makes a status unstable where something is waited for.
func (s status) settle(checks ...check) status {
	if message := first(checks...); message != "" {
		return s.unstable(message)
	}
	return s
}

// deploymentStatus gathers what the conditions say, and what replicas are still
// waited for: a deployment out of time is failed though it is unavailable, too.
func deploymentStatus(w *workload) status {
	result, s := stable(), w.Status
	if w.Metadata.Generation != s.ObservedGeneration {
		return result.unstable(waitGeneration)
	}
	for _, c := range s.Conditions {
		if strings.EqualFold(c.Reason, "DeploymentPaused") {
			result.Paused = condition{true, c.Message}
		}
		if c.is("Available", "False") {
			result = result.unstable(c.Message).unavailable(c.Message)
		}
		if strings.EqualFold(c.Type, "Progressing") && strings.EqualFold(c.Reason, "ProgressDeadlineExceeded") {
			result = result.failed("Deployment exceeded its progress deadline")
		}
	}
	desired, updated := w.Spec.Replicas, number(s.UpdatedReplicas)
	return result.settle(
		check{updated < desired, "Waiting for all replicas to be updated"},
		check{s.Replicas > updated, "Waiting for old replicas to finish termination"},
		check{s.AvailableReplicas < desired, waitAvailable},
		check{s.ReadyReplicas < desired, waitReady},
	)
}

func replicaSetStatus(w *workload) status {
	desired, s := w.Spec.Replicas, w.Status
	message := first(
		check{s.FullyLabeledReplicas < desired, "Waiting for all replicas to be fully-labeled"},
		check{s.ReadyReplicas < desired, waitReady},
		check{s.AvailableReplicas < desired, waitAvailable},
	)
	if message != "" {
		return stable().unstable(message).unavailable(message)
	}
	return stable().settle(check{w.Metadata.Generation != s.ObservedGeneration, "Waiting for replicaset spec update to be observed"})
}

func daemonSetStatus(w *workload) status {
	s := w.Status
	if w.Metadata.Generation != s.ObservedGeneration {
		return stable().unstable(waitGeneration)
	}
	if w.Spec.UpdateStrategy.Type != "RollingUpdate" {
		return stable()
	}
	desired := s.DesiredNumberScheduled
	return stable().settle(
		check{desired > s.CurrentNumberScheduled, "Waiting for all replicas to be scheduled"},
		check{desired > s.UpdatedNumberScheduled, "Waiting for all updated replicas to be scheduled"},
		check{desired > s.NumberAvailable, waitAvailable},
		check{desired > s.NumberReady, waitReady},
	)
}

func statefulSetStatus(w *workload) status {
	s, desired := w.Status, w.Spec.Replicas
	message := first(
		check{w.Metadata.Generation != s.ObservedGeneration, waitGeneration},
		check{desired > s.Replicas, "Waiting for at least the desired replica count to be met"},
		check{desired > s.ReadyReplicas, "Waiting for all updated replicas to be ready"},
	)
	if message != "" {
		return stable().unstable(message)
	}
	strategy := w.Spec.UpdateStrategy
	if strategy.Type == "RollingUpdate" && strategy.RollingUpdate != nil && s.UpdatedReplicas != nil {
		if *s.UpdatedReplicas < s.Replicas-strategy.RollingUpdate.Partition { // those to go have to be gone
			return stable().unstable("Waiting for partitioned roll out to finish")
		}
		done := stable()
		done.Stable.Message = "Partitioned roll out complete"
		return done
	}
	return stable().settle(
		check{s.CurrentReplicas < desired, "Waiting for all updated replicas to be scheduled"},
		check{s.UpdateRevision != s.CurrentRevision, "Waiting for the updated revision to match the current revision"},
	)
}

func jobStatus(w *workload) status {
	completions := 1.0
	if w.Spec.Completions != nil {
		completions = *w.Spec.Completions
	}
	if w.Status.Succeeded >= completions {
		return stable()
	}
	for _, c := range w.Status.Conditions {
		if c.is("Failed", "True") {
			return stable().failed(c.Message)
		}
	}
	return stable().unstable("Waiting for jobs to finish")
}

func podStatus(w *workload) status {
	message := "Pod phase is unknown"
	switch w.Status.Phase {
	case "Running", "Succeeded":
		return stable()
	case "Pending":
		message = "Pod is pending"
	case "Failed":
		message = "Pod has failed"
	}
	return stable().unstable(message).unavailable(message)
}

func autoscalerStatus(w *workload) status {
	current, desired := w.Status.CurrentReplicas, w.Status.DesiredReplicas
	return stable().settle(
		check{desired > current, fmt.Sprintf("Waiting for HPA to complete a scale up, current: %.0f desired: %.0f", current, desired)},
		check{desired < current, fmt.Sprintf("Waiting for HPA to complete a scale down, current: %.0f desired: %.0f", current, desired)},
	)
}

func number(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}
