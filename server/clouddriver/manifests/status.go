package manifests

import (
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/manifest"
)

// condition is one of the four parts of a status.
type condition struct {
	State   bool   `json:"state"`
	Message string `json:"message,omitempty"`
}

// manifestStatus is the status of a manifest. Orca waits until it is stable or failed.
type manifestStatus struct {
	Stable    condition `json:"stable"`
	Failed    condition `json:"failed"`
	Paused    condition `json:"paused"`
	Available condition `json:"available"`
}

func stable() manifestStatus {
	return manifestStatus{Stable: condition{State: true}, Available: condition{State: true}}
}

func (s manifestStatus) unstable(message string) manifestStatus {
	s.Stable = condition{false, message}
	return s
}

func (s manifestStatus) unavailable(message string) manifestStatus {
	s.Available = condition{false, message}
	return s
}

func (s manifestStatus) failed(message string) manifestStatus {
	s.Failed = condition{true, message}
	return s
}

// workload is the part of an object that the rules depend on, for all kinds.
type workload struct {
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Generation float64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Replicas       float64  `json:"replicas"`
		Completions    *float64 `json:"completions"`
		UpdateStrategy struct {
			Type          string `json:"type"`
			RollingUpdate *struct {
				Partition float64 `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
	} `json:"spec"`
	Status *workloadStatus `json:"status"`
}

type workloadStatus struct {
	Phase              string          `json:"phase"`
	ObservedGeneration float64         `json:"observedGeneration"`
	Conditions         []kubeCondition `json:"conditions"`

	Replicas             float64  `json:"replicas"`
	FullyLabeledReplicas float64  `json:"fullyLabeledReplicas"`
	ReadyReplicas        float64  `json:"readyReplicas"`
	AvailableReplicas    float64  `json:"availableReplicas"`
	CurrentReplicas      float64  `json:"currentReplicas"`
	UpdatedReplicas      *float64 `json:"updatedReplicas"`

	DesiredNumberScheduled float64 `json:"desiredNumberScheduled"`
	CurrentNumberScheduled float64 `json:"currentNumberScheduled"`
	UpdatedNumberScheduled float64 `json:"updatedNumberScheduled"`
	NumberAvailable        float64 `json:"numberAvailable"`
	NumberReady            float64 `json:"numberReady"`

	CurrentRevision string  `json:"currentRevision"`
	UpdateRevision  string  `json:"updateRevision"`
	Succeeded       float64 `json:"succeeded"`
	DesiredReplicas float64 `json:"desiredReplicas"`
}

// kubeCondition is an entry of an object's status.conditions.
type kubeCondition struct {
	Type               string  `json:"type"`
	Status             string  `json:"status"`
	Reason             string  `json:"reason"`
	Message            string  `json:"message"`
	ObservedGeneration float64 `json:"observedGeneration"`
}

// is compares without case, as Clouddriver does.
func (c kubeCondition) is(conditionType, status string) bool {
	return strings.EqualFold(c.Type, conditionType) && strings.EqualFold(c.Status, status)
}

// evaluate returns the status of a manifest according to Clouddriver. If readiness is set,
// kinds without a rule of Clouddriver get their status from evaluateReadiness.
func evaluate(kind vedette.Kind, body []byte, readiness bool) (manifestStatus, error) {
	if readiness && statusRule(kind) == nil {
		return evaluateReadiness(kind, body)
	}
	return evaluateStatus(kind, body)
}

// evaluateStatus returns the status of a manifest according to Clouddriver. Kinds without a
// rule are always stable. The error is vedette.Invalid if Clouddriver does not support the
// version of a workload, although the rules would work.
func evaluateStatus(kind vedette.Kind, body []byte) (manifestStatus, error) {
	rule := statusRule(kind)
	if rule == nil {
		return stable(), nil
	}
	var w workload
	if err := exactjson.Unmarshal(body, &w, web.ObjectLimits); err != nil {
		return manifestStatus{}, fmt.Errorf("read the status of a %s: %w", kind, err)
	}
	switch kind.Name {
	case "Deployment", "DaemonSet", "StatefulSet":
		if w.APIVersion != "apps/v1" {
			return manifestStatus{}, vedette.Errorf(vedette.Invalid, "No %s is supported at api version %s", manifest.KindName(kind), w.APIVersion)
		}
	}
	if kind.Name == "StatefulSet" && w.Spec.UpdateStrategy.Type == "OnDelete" {
		return stable(), nil // OnDelete: it never rolls out by itself
	}
	if w.Status == nil {
		return stable().unstable("No status reported yet").unavailable("No availability reported"), nil
	}
	return rule(&w), nil
}

func statusRule(kind vedette.Kind) func(*workload) manifestStatus {
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
		return func(*workload) manifestStatus { return stable() }
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

// waitCheck is one check of a rule: whether it is pending, and its message.
type waitCheck struct {
	pending bool
	message string
}

// firstPending returns the message of the first pending check, or "".
func firstPending(checks ...waitCheck) string {
	for _, c := range checks {
		if c.pending {
			return c.message
		}
	}
	return ""
}

// unstableIf marks the status as unstable if a check is pending.
func (s manifestStatus) unstableIf(checks ...waitCheck) manifestStatus {
	if message := firstPending(checks...); message != "" {
		return s.unstable(message)
	}
	return s
}

// deploymentStatus evaluates conditions first, then replicas, because a deployment can be both
// failed and unavailable.
func deploymentStatus(w *workload) manifestStatus {
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
	desired, updated := w.Spec.Replicas, valueOrZero(s.UpdatedReplicas)
	return result.unstableIf(
		waitCheck{updated < desired, "Waiting for all replicas to be updated"},
		waitCheck{s.Replicas > updated, "Waiting for old replicas to finish termination"},
		waitCheck{s.AvailableReplicas < desired, waitAvailable},
		waitCheck{s.ReadyReplicas < desired, waitReady},
	)
}

func replicaSetStatus(w *workload) manifestStatus {
	desired, s := w.Spec.Replicas, w.Status
	message := firstPending(
		waitCheck{s.FullyLabeledReplicas < desired, "Waiting for all replicas to be fully-labeled"},
		waitCheck{s.ReadyReplicas < desired, waitReady},
		waitCheck{s.AvailableReplicas < desired, waitAvailable},
	)
	if message != "" {
		return stable().unstable(message).unavailable(message)
	}
	return stable().unstableIf(waitCheck{w.Metadata.Generation != s.ObservedGeneration, "Waiting for replicaset spec update to be observed"})
}

func daemonSetStatus(w *workload) manifestStatus {
	s := w.Status
	if w.Metadata.Generation != s.ObservedGeneration {
		return stable().unstable(waitGeneration)
	}
	if w.Spec.UpdateStrategy.Type != "RollingUpdate" {
		return stable()
	}
	desired := s.DesiredNumberScheduled
	return stable().unstableIf(
		waitCheck{desired > s.CurrentNumberScheduled, "Waiting for all replicas to be scheduled"},
		waitCheck{desired > s.UpdatedNumberScheduled, "Waiting for all updated replicas to be scheduled"},
		waitCheck{desired > s.NumberAvailable, waitAvailable},
		waitCheck{desired > s.NumberReady, waitReady},
	)
}

func statefulSetStatus(w *workload) manifestStatus {
	s, desired := w.Status, w.Spec.Replicas
	message := firstPending(
		waitCheck{w.Metadata.Generation != s.ObservedGeneration, waitGeneration},
		waitCheck{desired > s.Replicas, "Waiting for at least the desired replica count to be met"},
		waitCheck{desired > s.ReadyReplicas, "Waiting for all updated replicas to be ready"},
	)
	if message != "" {
		return stable().unstable(message)
	}
	strategy := w.Spec.UpdateStrategy
	if strategy.Type == "RollingUpdate" && strategy.RollingUpdate != nil && s.UpdatedReplicas != nil {
		if *s.UpdatedReplicas < s.Replicas-strategy.RollingUpdate.Partition { // not spec.replicas: surplus pods must be gone
			return stable().unstable("Waiting for partitioned roll out to finish")
		}
		done := stable()
		done.Stable.Message = "Partitioned roll out complete"
		return done
	}
	return stable().unstableIf(
		waitCheck{s.CurrentReplicas < desired, "Waiting for all updated replicas to be scheduled"},
		waitCheck{s.UpdateRevision != s.CurrentRevision, "Waiting for the updated revision to match the current revision"},
	)
}

func jobStatus(w *workload) manifestStatus {
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

func podStatus(w *workload) manifestStatus {
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

func autoscalerStatus(w *workload) manifestStatus {
	current, desired := w.Status.CurrentReplicas, w.Status.DesiredReplicas
	return stable().unstableIf(
		waitCheck{desired > current, fmt.Sprintf("Waiting for HPA to complete a scale up, current: %.0f desired: %.0f", current, desired)},
		waitCheck{desired < current, fmt.Sprintf("Waiting for HPA to complete a scale down, current: %.0f desired: %.0f", current, desired)},
	)
}

func valueOrZero(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}
