package metrics

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/metricset"
)

// kindLabel returns the label value of a kind: its name if it is one of Kubernetes itself. Custom
// kinds are metricset.Other, because everybody who may create one in a cluster chooses its name.
func kindLabel(k vedette.Kind) string {
	if nativeKinds[k.Name] && groupLabel(k) != metricset.Other {
		return k.Name
	}
	return metricset.Other
}

// groupLabel returns the label value of a kind's API group.
func groupLabel(k vedette.Kind) string {
	switch k.Group {
	case "":
		return "core"
	case "apps", "batch", "autoscaling", "policy", "extensions", "networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io",
		"apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
		"events.k8s.io", "scheduling.k8s.io", "node.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "resource.k8s.io":
		return k.Group
	}
	return metricset.Other
}

var nativeKinds = setOf("Pod", "Service", "Endpoints", "ConfigMap", "Secret", "Namespace", "Node", "Event", "ServiceAccount",
	"PersistentVolume", "PersistentVolumeClaim", "ReplicationController", "PodTemplate", "LimitRange", "ResourceQuota",
	"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision", "Job", "CronJob", "HorizontalPodAutoscaler",
	"PodDisruptionBudget", "Ingress", "IngressClass", "NetworkPolicy", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
	"StorageClass", "VolumeAttachment", "CSIDriver", "CSINode", "CustomResourceDefinition", "APIService",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "Lease", "EndpointSlice",
	"PriorityClass", "RuntimeClass", "CertificateSigningRequest")

func setOf(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
