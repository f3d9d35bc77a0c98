package apistub

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
)

// nativeResources lists the resources of Kubernetes in the form GROUP/VERSION: RESOURCE/KIND,… A
// plus sign marks namespaced resources. The API server serves Events twice; the second group is
// left out, because recordings have each Event once.
const nativeResources = `
/v1: bindings/Binding+ componentstatuses/ComponentStatus configmaps/ConfigMap/cm+ endpoints/Endpoints/ep+ events/Event/ev+ limitranges/LimitRange/limits+ namespaces/Namespace/ns nodes/Node/no persistentvolumeclaims/PersistentVolumeClaim/pvc+ persistentvolumes/PersistentVolume/pv pods/Pod/po+ podtemplates/PodTemplate+ replicationcontrollers/ReplicationController/rc+ resourcequotas/ResourceQuota/quota+ secrets/Secret+ serviceaccounts/ServiceAccount/sa+ services/Service/svc+
admissionregistration.k8s.io/v1: mutatingwebhookconfigurations/MutatingWebhookConfiguration validatingadmissionpolicies/ValidatingAdmissionPolicy validatingadmissionpolicybindings/ValidatingAdmissionPolicyBinding validatingwebhookconfigurations/ValidatingWebhookConfiguration
apiextensions.k8s.io/v1: customresourcedefinitions/CustomResourceDefinition/crd
apiregistration.k8s.io/v1: apiservices/APIService
apps/v1: controllerrevisions/ControllerRevision+ daemonsets/DaemonSet/ds+ deployments/Deployment/deploy+ replicasets/ReplicaSet/rs+ statefulsets/StatefulSet/sts+
autoscaling/v2: horizontalpodautoscalers/HorizontalPodAutoscaler/hpa+
batch/v1: cronjobs/CronJob/cj+ jobs/Job+
certificates.k8s.io/v1: certificatesigningrequests/CertificateSigningRequest/csr
coordination.k8s.io/v1: leases/Lease+
discovery.k8s.io/v1: endpointslices/EndpointSlice+
flowcontrol.apiserver.k8s.io/v1: flowschemas/FlowSchema prioritylevelconfigurations/PriorityLevelConfiguration
networking.k8s.io/v1: ingressclasses/IngressClass ingresses/Ingress/ing+ ipaddresses/IPAddress/ip networkpolicies/NetworkPolicy/netpol+ servicecidrs/ServiceCIDR
node.k8s.io/v1: runtimeclasses/RuntimeClass
policy/v1: poddisruptionbudgets/PodDisruptionBudget/pdb+
rbac.authorization.k8s.io/v1: clusterrolebindings/ClusterRoleBinding clusterroles/ClusterRole rolebindings/RoleBinding+ roles/Role+
resource.k8s.io/v1: deviceclasses/DeviceClass resourceclaims/ResourceClaim+ resourceclaimtemplates/ResourceClaimTemplate+ resourceslices/ResourceSlice
scheduling.k8s.io/v1: priorityclasses/PriorityClass/pc
storage.k8s.io/v1: csidrivers/CSIDriver csinodes/CSINode csistoragecapacities/CSIStorageCapacity+ storageclasses/StorageClass/sc volumeattachments/VolumeAttachment volumeattributesclasses/VolumeAttributesClass/vac
`

// parseNativeResources returns the resources of nativeResources.
func parseNativeResources() []vedette.Resource {
	var resources []vedette.Resource
	for line := range strings.Lines(strings.TrimSpace(nativeResources)) {
		groupVersion, names, _ := strings.Cut(line, ":")
		group, version, _ := strings.Cut(groupVersion, "/")
		for _, name := range strings.Fields(names) {
			name, isNamespaced := strings.CutSuffix(name, "+")
			parts := strings.Split(name, "/")
			resources = append(resources, vedette.Resource{Kind: vedette.Kind{Group: group, Name: parts[1]}, Version: version,
				Plural: parts[0], Singular: strings.ToLower(parts[1]), ShortNames: parts[2:], Namespaced: isNamespaced})
		}
	}
	return resources
}

// definition is the part of a CustomResourceDefinition that names its resources.
type definition struct {
	Spec struct {
		Group, Scope string
		Names        struct {
			Kind, Plural, Singular string
			ShortNames             []string
		}
		Versions []struct {
			Name   string
			Served bool
		}
	}
}

// customResources returns the resources that a CustomResourceDefinition defines, one for each
// version that is served.
func customResources(raw []byte) ([]vedette.Resource, error) {
	var d definition
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("parse a CustomResourceDefinition: %w", err)
	}
	var resources []vedette.Resource
	for _, v := range d.Spec.Versions {
		if v.Served {
			names := d.Spec.Names
			resources = append(resources, vedette.Resource{Kind: vedette.Kind{Group: d.Spec.Group, Name: names.Kind}, Version: v.Name,
				Plural: names.Plural, Singular: names.Singular, ShortNames: slices.Clone(names.ShortNames), Namespaced: d.Spec.Scope == "Namespaced"})
		}
	}
	return resources, nil
}
