package describe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/vedette-io/vedette/server/tables"
)

// pod has the fields of a Pod that kubectl describes.
type pod struct {
	Metadata metadata
	Spec     struct {
		podSpec
		Priority            *int64
		RuntimeClassName    string
		NodeName            string
		EphemeralContainers []container
		ReadinessGates      []struct{ ConditionType string }
		SecurityContext     struct {
			SeccompProfile *struct{ Type, LocalhostProfile string }
		}
	}
	Status struct {
		Phase, Reason, Message, HostIP, PodIP, NominatedNodeName             string
		StartTime                                                            *time.Time
		PodIPs                                                               []struct{ IP string }
		InitContainerStatuses, ContainerStatuses, EphemeralContainerStatuses []containerStatus
		Conditions                                                           []condition
	}
}

type condition struct{ Type, Status, Reason string }

type containerStatus struct {
	Name, ContainerID, ImageID string
	Ready                      bool
	RestartCount               int64
	State, LastState           containerState
}

type containerState struct {
	Running    *struct{ StartedAt time.Time }
	Waiting    *struct{ Reason string }
	Terminated *struct {
		Reason, Message       string
		ExitCode, Signal      int64
		StartedAt, FinishedAt time.Time
	}
}

func statusOf(statuses []containerStatus, name string) *containerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

func (d *descriptionLines) addStatus(s containerStatus) {
	d.addState("State", s.State)
	if s.LastState.Terminated != nil {
		d.addState("Last State", s.LastState)
	}
	d.addf(2, "Ready:\t%s", map[bool]string{true: "True", false: "False"}[s.Ready])
	d.addf(2, "Restart Count:\t%d", s.RestartCount)
}

func (d *descriptionLines) addState(title string, s containerState) {
	switch {
	case s.Running != nil:
		d.addf(2, "%s:\tRunning", title)
		d.addf(3, "Started:\t%s", s.Running.StartedAt.Local().Format(time.RFC1123Z))
	case s.Terminated != nil:
		t := s.Terminated
		d.addf(2, "%s:\tTerminated", title)
		d.addOptional(3, "Reason", t.Reason)
		d.addOptional(3, "Message", t.Message)
		d.addf(3, "Exit Code:\t%d", t.ExitCode)
		if t.Signal > 0 {
			d.addf(3, "Signal:\t%d", t.Signal)
		}
		d.addf(3, "Started:\t%s", t.StartedAt.Local().Format(time.RFC1123Z))
		d.addf(3, "Finished:\t%s", t.FinishedAt.Local().Format(time.RFC1123Z))
	default:
		d.addf(2, "%s:\tWaiting", title)
		if s.Waiting != nil {
			d.addOptional(3, "Reason", s.Waiting.Reason)
		}
	}
}

// addOptional adds a value unless it is empty.
func (d *descriptionLines) addOptional(level int, title, value string) {
	if value != "" {
		d.addf(level, "%s:\t%s", title, value)
	}
}

func (d *descriptionLines) addPod(o Object, now time.Time) error {
	var p pod
	if err := json.Unmarshal(o.Manifest, &p); err != nil {
		return err
	}
	d.addf(0, "Name:\t%s", p.Metadata.Name)
	d.addf(0, "Namespace:\t%s", p.Metadata.Namespace)
	if p.Spec.Priority != nil {
		d.addf(0, "Priority:\t%d", *p.Spec.Priority)
	}
	d.addOptional(0, "Priority Class Name", p.Spec.PriorityClassName)
	d.addOptional(0, "Runtime Class Name", p.Spec.RuntimeClassName)
	d.addOptional(0, "Service Account", p.Spec.ServiceAccountName)
	if p.Spec.NodeName == "" {
		d.addf(0, "Node:\t<none>")
	} else {
		d.addf(0, "Node:\t%s/%s", p.Spec.NodeName, p.Status.HostIP)
	}
	if p.Status.StartTime != nil {
		d.addf(0, "Start Time:\t%s", p.Status.StartTime.Local().Format(time.RFC1123Z))
	}
	d.addMetadata(p.Metadata)
	d.addPodStatus(p, now)
	if len(p.Spec.InitContainers) > 0 {
		d.addContainers("Init Containers", p.Spec.InitContainers, true, p.Status.InitContainerStatuses)
	}
	d.addContainers("Containers", p.Spec.Containers, true, p.Status.ContainerStatuses)
	if len(p.Spec.EphemeralContainers) > 0 {
		d.addContainers("Ephemeral Containers", p.Spec.EphemeralContainers, true, p.Status.EphemeralContainerStatuses)
	}
	d.addPodConditions(p)
	d.addVolumes(p.Spec.Volumes, true)
	d.addf(0, "QoS Class:\t%s", p.qosClass())
	d.addValues("Node-Selectors:", sortedPairs(p.Spec.NodeSelector))
	d.addValues("Tolerations:", tolerationLines(p.Spec.Tolerations))
	if len(p.Spec.TopologySpreadConstraints) > 0 {
		d.addValues("Topology Spread Constraints:", spreadLines(p.Spec.TopologySpreadConstraints))
	}
	return nil
}

func (d *descriptionLines) addPodStatus(p pod, now time.Time) {
	if deleted := p.Metadata.DeletionTimestamp; deleted != nil && p.Status.Phase != "Failed" && p.Status.Phase != "Succeeded" {
		d.addf(0, "Status:\tTerminating (lasts %s)", tables.Age(now.Sub(*deleted)))
		d.addf(0, "Termination Grace Period:\t%ds", p.Metadata.DeletionGracePeriodSeconds)
	} else {
		d.addf(0, "Status:\t%s", p.Status.Phase)
	}
	d.addOptional(0, "Reason", p.Status.Reason)
	d.addOptional(0, "Message", strings.ReplaceAll(p.Status.Message, "\n", " "))
	if profile := p.Spec.SecurityContext.SeccompProfile; profile != nil {
		d.addf(0, "SeccompProfile:\t%s", profile.Type)
		d.addOptional(0, "LocalhostProfile", profile.LocalhostProfile)
	}
	d.addf(0, "IP:\t%s", p.Status.PodIP)
	if len(p.Status.PodIPs) == 0 {
		d.addf(0, "IPs:\t<none>")
	} else {
		d.addf(0, "IPs:")
	}
	for _, ip := range p.Status.PodIPs {
		d.addf(1, "IP:\t%s", ip.IP)
	}
	d.addOptional(0, "Controlled By", p.Metadata.controller())
	d.addOptional(0, "NominatedNodeName", p.Status.NominatedNodeName)
}

func (d *descriptionLines) addPodConditions(p pod) {
	if len(p.Spec.ReadinessGates) > 0 {
		*d = append(*d, "Readiness Gates:", "  Type\tStatus")
		for _, gate := range p.Spec.ReadinessGates {
			status := "<none>"
			for _, c := range p.Status.Conditions {
				if c.Type == gate.ConditionType {
					status = c.Status
				}
			}
			d.addf(1, "%s \t%s ", gate.ConditionType, status)
		}
	}
	if len(p.Status.Conditions) > 0 {
		*d = append(*d, "Conditions:", "  Type\tStatus")
		for _, c := range p.Status.Conditions {
			d.addf(1, "%s \t%s ", c.Type, c.Status)
		}
	}
}

// qosClass returns the class that the resources of the containers give a pod: Guaranteed if each has limits for CPU and memory
// that are its requests, BestEffort if none has any.
func (p pod) qosClass() string {
	guaranteed, bestEffort := true, true
	for _, list := range [][]container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			for _, name := range []string{"cpu", "memory"} {
				limit, request := c.Resources.Limits[name], c.Resources.Requests[name]
				bestEffort = bestEffort && isZeroOrMissing(limit) && isZeroOrMissing(request)
				guaranteed = guaranteed && !isZeroOrMissing(limit) && sameQuantity(limit, request)
			}
		}
	}
	switch {
	case bestEffort:
		return "BestEffort"
	case guaranteed:
		return "Guaranteed"
	}
	return "Burstable"
}

func isZeroOrMissing(quantity string) bool {
	q, err := resource.ParseQuantity(quantity)
	return err != nil || q.IsZero()
}

func sameQuantity(a, b string) bool {
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// deployment has the fields of a Deployment that kubectl describes.
type deployment struct {
	Metadata metadata
	Spec     struct {
		Replicas        *int64
		Selector        *metav1.LabelSelector
		MinReadySeconds int64
		Strategy        struct {
			Type          string
			RollingUpdate *struct{ MaxUnavailable, MaxSurge intstr.IntOrString }
		}
		Template PodTemplate
	}
	Status struct {
		Replicas, UpdatedReplicas, AvailableReplicas, UnavailableReplicas int64
		Conditions                                                        []condition
	}
}

func (d *descriptionLines) addDeployment(o Object) error {
	var deploy deployment
	if err := json.Unmarshal(o.Manifest, &deploy); err != nil {
		return err
	}
	d.addf(0, "Name:\t%s", deploy.Metadata.Name)
	d.addf(0, "Namespace:\t%s", deploy.Metadata.Namespace)
	d.addf(0, "CreationTimestamp:\t%s", deploy.Metadata.CreationTimestamp.Local().Format(time.RFC1123Z))
	d.addMetadata(deploy.Metadata)
	d.addf(0, "Selector:\t%s", metav1.FormatLabelSelector(deploy.Spec.Selector))
	s := deploy.Status
	desired := int64(1)
	if deploy.Spec.Replicas != nil {
		desired = *deploy.Spec.Replicas
	}
	d.addf(0, "Replicas:\t%d desired | %d updated | %d total | %d available | %d unavailable", desired, s.UpdatedReplicas, s.Replicas,
		s.AvailableReplicas, s.UnavailableReplicas)
	d.addf(0, "StrategyType:\t%s", deploy.Spec.Strategy.Type)
	d.addf(0, "MinReadySeconds:\t%d", deploy.Spec.MinReadySeconds)
	if update := deploy.Spec.Strategy.RollingUpdate; update != nil {
		d.addf(0, "RollingUpdateStrategy:\t%s max unavailable, %s max surge", update.MaxUnavailable.String(), update.MaxSurge.String())
	}
	*d = append(*d, deploy.Spec.Template.Describe("")...)
	if len(s.Conditions) > 0 {
		*d = append(*d, "Conditions:", "  Type\tStatus\tReason", "  ----\t------\t------")
		for _, c := range s.Conditions {
			d.addf(1, "%s \t%s\t%s", c.Type, c.Status, c.Reason)
		}
	}
	return d.addReplicaSets(o, deploy)
}

// addReplicaSets adds the ReplicaSet of the current revision, and the others.
func (d *descriptionLines) addReplicaSets(o Object, deploy deployment) error {
	const revision = "deployment.kubernetes.io/revision"
	var current, old []string
	for _, raw := range o.ReplicaSets {
		var set struct {
			Metadata metadata
			Spec     struct{ Replicas int64 }
			Status   struct{ Replicas int64 }
		}
		if err := json.Unmarshal(raw, &set); err != nil {
			return fmt.Errorf("read a ReplicaSet: %w", err)
		}
		if set.Metadata.controller() != "Deployment/"+deploy.Metadata.Name {
			continue
		}
		text := fmt.Sprintf("%s (%d/%d replicas created)", set.Metadata.Name, set.Status.Replicas, set.Spec.Replicas)
		if set.Metadata.Annotations[revision] == deploy.Metadata.Annotations[revision] {
			current = append(current, text)
		} else {
			old = append(old, text)
		}
	}
	if len(current)+len(old) == 0 {
		return nil
	}
	d.addf(0, "OldReplicaSets:\t%s", cmp.Or(strings.Join(old, ", "), "<none>"))
	d.addf(0, "NewReplicaSet:\t%s", cmp.Or(strings.Join(current, ", "), "<none>"))
	return nil
}
