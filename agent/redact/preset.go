package redact

import (
	"strings"

	"github.com/vedette-io/vedette"
)

// PresetStrict is the preset with which only what Spinnaker's views need leaves the cluster.
const PresetStrict = "strict"

// MarkerAnnotation is in each object that the strict preset has cut, so that nobody applies what is left of it.
const MarkerAnnotation = "vedette.io/redacted"

const marker = `"` + MarkerAnnotation + `":"` + PresetStrict + `"`

// strictAnnotations are the keys of annotations that the strict preset keeps, besides those of Spinnaker: by definition of
// Kubernetes, they hold a number or the name of another object.
var strictAnnotations = map[string]bool{
	"deployment.kubernetes.io/revision":           true,
	"deployment.kubernetes.io/desired-replicas":   true,
	"deployment.kubernetes.io/max-replicas":       true,
	"deprecated.daemonset.template.generation":    true,
	"kubectl.kubernetes.io/restartedAt":           true,
	"kubectl.kubernetes.io/default-container":     true,
	"ingressclass.kubernetes.io/is-default-class": true,
	"storageclass.kubernetes.io/is-default-class": true,
}

func isStrictAnnotation(name []byte) bool {
	if strictAnnotations[string(name)] {
		return true
	}
	for _, prefix := range allowedAnnotationPrefixes {
		if strings.HasPrefix(string(name), prefix) {
			return true
		}
	}
	return false
}

// allowed is a place in an object where the strict preset keeps something.
type allowed struct {
	names       map[string]*allowed // the members that are kept
	elements    *allowed            // of an array
	scalar      bool                // a text, a number or a switch is kept
	all         bool                // everything is kept
	annotations bool                // known annotations are kept
}

var allowedScalar = &allowed{scalar: true}

// member returns the place of a member, nil if it is not kept. c is the first byte of its value.
func (a *allowed) member(name []byte, c byte) *allowed {
	var child *allowed
	switch {
	case a.all:
		return a
	case a.annotations:
		if isStrictAnnotation(name) {
			child = allowedScalar
		}
	default:
		child = a.names[string(name)]
	}
	if child == nil || !child.accepts(c) {
		return nil
	}
	return child
}

// of returns the place of the elements of an array.
func (a *allowed) of() *allowed {
	if a.all {
		return a
	}
	return a.elements
}

// accepts reports whether a value that begins with a byte has the type that the place is for. A peer may send another one.
func (a *allowed) accepts(c byte) bool {
	switch {
	case a.all:
		return true
	case c == '{':
		return a.annotations || len(a.names) > 0
	case c == '[':
		return a.elements != nil
	}
	return a.scalar
}

// allow adds a path. Its last part may be ** for everything below, or @ for known annotations.
func (a *allowed) allow(path string) {
	for part := range strings.SplitSeq(path, ".") {
		switch part {
		case "**":
			a.all = true
			return
		case "@":
			a.annotations = true
			return
		case "*":
			if a.elements == nil {
				a.elements = &allowed{}
			}
			a = a.elements
		default:
			if a.names == nil {
				a.names = map[string]*allowed{}
			}
			if a.names[part] == nil {
				a.names[part] = &allowed{}
			}
			a = a.names[part]
		}
	}
	a.scalar = true
}

func (a *allowed) allowEach(prefix, paths string) {
	for path := range strings.FieldsSeq(paths) {
		a.allow(prefix + path)
	}
}

// The paths that the strict preset keeps. Labels and selectors are names that Spinnaker groups by. Free texts are not
// kept: the messages of containers and of Events quote commands and what programs print.
const (
	strictCommon = `apiVersion kind metadata.name metadata.generateName metadata.namespace metadata.uid metadata.resourceVersion
		metadata.generation metadata.creationTimestamp metadata.deletionTimestamp metadata.deletionGracePeriodSeconds metadata.labels.**
		metadata.annotations.@ metadata.ownerReferences.*.apiVersion metadata.ownerReferences.*.kind metadata.ownerReferences.*.name
		metadata.ownerReferences.*.uid metadata.ownerReferences.*.controller metadata.ownerReferences.*.blockOwnerDeletion
		metadata.finalizers.*`
	strictConditions = `conditions.*.type conditions.*.status conditions.*.reason conditions.*.message conditions.*.lastTransitionTime
		conditions.*.lastUpdateTime conditions.*.lastProbeTime conditions.*.observedGeneration`
	strictContainer = `name image restartPolicy imagePullPolicy ports.*.name ports.*.containerPort ports.*.protocol ports.*.hostPort
		resources.requests.** resources.limits.**`
	strictContainerStatus = `name image imageID containerID ready started restartCount state.running.startedAt state.waiting.reason
		state.terminated.exitCode state.terminated.reason state.terminated.signal state.terminated.startedAt state.terminated.finishedAt
		lastState.running.startedAt lastState.waiting.reason lastState.terminated.exitCode lastState.terminated.reason lastState.terminated.signal
		lastState.terminated.startedAt lastState.terminated.finishedAt`
	strictPodSpec = `nodeName restartPolicy serviceAccountName readinessGates.*.conditionType terminationGracePeriodSeconds priorityClassName
		hostNetwork`
)

// strictKinds are what the strict preset keeps of the kinds that Spinnaker's views show, besides strictCommon. Of all other
// kinds, such as custom resources, it keeps that only.
var strictKinds = map[vedette.Kind]string{
	{Name: "Pod"}: `status.phase status.reason status.podIP status.podIPs.*.ip status.hostIP status.startTime status.qosClass
		status.nominatedNodeName`,
	{Group: "apps", Name: "Deployment"}: `spec.replicas spec.paused spec.selector.** spec.strategy.** spec.minReadySeconds spec.revisionHistoryLimit
		spec.progressDeadlineSeconds status.replicas status.readyReplicas status.updatedReplicas status.availableReplicas
		status.unavailableReplicas status.observedGeneration status.collisionCount`,
	{Group: "apps", Name: "ReplicaSet"}: `spec.replicas spec.selector.** spec.minReadySeconds status.replicas status.readyReplicas status.availableReplicas
		status.fullyLabeledReplicas status.observedGeneration`,
	{Group: "apps", Name: "StatefulSet"}: `spec.replicas spec.selector.** spec.serviceName spec.updateStrategy.** spec.podManagementPolicy status.replicas
		status.readyReplicas status.currentReplicas status.updatedReplicas status.availableReplicas status.currentRevision status.updateRevision
		status.observedGeneration status.collisionCount`,
	{Group: "apps", Name: "DaemonSet"}: `spec.selector.** spec.updateStrategy.** spec.minReadySeconds status.desiredNumberScheduled
		status.currentNumberScheduled status.updatedNumberScheduled status.numberAvailable status.numberUnavailable status.numberReady
		status.numberMisscheduled status.observedGeneration`,
	{Group: "batch", Name: "Job"}: `spec.completions spec.parallelism spec.backoffLimit spec.suspend spec.selector.** spec.activeDeadlineSeconds
		spec.ttlSecondsAfterFinished status.active status.ready status.succeeded status.failed status.startTime status.completionTime`,
	{Group: "batch", Name: "CronJob"}: `spec.schedule spec.timeZone spec.suspend spec.concurrencyPolicy status.lastScheduleTime status.lastSuccessfulTime
		status.active.*.kind status.active.*.name status.active.*.namespace status.active.*.uid status.active.*.apiVersion`,
	{Name: "Service"}: `spec.type spec.clusterIP spec.clusterIPs.* spec.externalIPs.* spec.selector.** spec.ports.** spec.loadBalancerIP
		spec.externalName spec.sessionAffinity status.loadBalancer.ingress.*.ip status.loadBalancer.ingress.*.hostname`,
	{Group: "networking.k8s.io", Name: "Ingress"}: `spec.ingressClassName spec.defaultBackend.** spec.rules.*.host spec.rules.*.http.paths.**
		spec.tls.*.hosts.* spec.tls.*.secretName status.loadBalancer.ingress.*.ip status.loadBalancer.ingress.*.hostname`,
	{Group: "networking.k8s.io", Name: "NetworkPolicy"}: `spec.podSelector.** spec.policyTypes.*`,
	{Group: "autoscaling", Name: "HorizontalPodAutoscaler"}: `spec.scaleTargetRef.kind spec.scaleTargetRef.name spec.scaleTargetRef.apiVersion
		spec.minReplicas spec.maxReplicas status.currentReplicas status.desiredReplicas status.observedGeneration status.lastScaleTime`,
	{Group: "policy", Name: "PodDisruptionBudget"}: `spec.minAvailable spec.maxUnavailable spec.selector.** status.disruptionsAllowed
		status.currentHealthy status.desiredHealthy status.expectedPods status.observedGeneration`,
	{Name: "Namespace"}: `status.phase`,
	{Name: "Node"}: `spec.unschedulable spec.taints.*.key spec.taints.*.effect status.nodeInfo.kubeletVersion status.nodeInfo.osImage
		status.nodeInfo.kernelVersion status.nodeInfo.containerRuntimeVersion status.nodeInfo.architecture status.nodeInfo.operatingSystem
		status.addresses.*.type status.addresses.*.address status.capacity.** status.allocatable.**`,
	{Name: "PersistentVolumeClaim"}: `spec.volumeName spec.storageClassName spec.accessModes.* spec.volumeMode status.phase status.capacity.**
		status.accessModes.*`,
	{Name: "PersistentVolume"}: `spec.capacity.** spec.accessModes.* spec.persistentVolumeReclaimPolicy spec.storageClassName spec.volumeMode
		spec.claimRef.namespace spec.claimRef.name status.phase status.reason`,
	{Group: "storage.k8s.io", Name: "StorageClass"}: `provisioner reclaimPolicy volumeBindingMode allowVolumeExpansion`,
	{Name: "Secret"}:    `type immutable`,
	{Name: "ConfigMap"}: `immutable`,
	{Name: "Event"}: `reason type count firstTimestamp lastTimestamp eventTime reportingComponent source.component source.host
		involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion`,
	{Group: "events.k8s.io", Name: "Event"}: `reason type eventTime reportingController deprecatedCount deprecatedFirstTimestamp deprecatedLastTimestamp
		regarding.kind regarding.namespace regarding.name regarding.uid regarding.apiVersion`,
	{Group: "metrics.k8s.io", Name: "PodMetrics"}: `timestamp window containers.*.name containers.*.usage.**`,
	{Group: "apiextensions.k8s.io", Name: "CustomResourceDefinition"}: `spec.group spec.scope spec.names.kind spec.names.plural spec.names.singular
		spec.names.shortNames.* spec.versions.*.name spec.versions.*.served spec.versions.*.storage`,
}

// strictTemplates are where kinds have pod templates.
var strictTemplates = map[vedette.Kind]string{
	{Name: "Pod"}:                       "",
	{Group: "apps", Name: "Deployment"}: "spec.template.", {Group: "apps", Name: "ReplicaSet"}: "spec.template.",
	{Group: "apps", Name: "StatefulSet"}: "spec.template.", {Group: "apps", Name: "DaemonSet"}: "spec.template.",
	{Group: "batch", Name: "Job"}: "spec.template.", {Group: "batch", Name: "CronJob"}: "spec.jobTemplate.spec.template.",
}

// strictWithConditions are the kinds of whose conditions Spinnaker's views need something.
var strictWithConditions = []vedette.Kind{{Name: "Pod"}, {Group: "apps", Name: "Deployment"}, {Group: "apps", Name: "ReplicaSet"},
	{Group: "apps", Name: "StatefulSet"}, {Group: "apps", Name: "DaemonSet"}, {Group: "batch", Name: "Job"},
	{Group: "autoscaling", Name: "HorizontalPodAutoscaler"}, {Name: "Node"}, {Group: "policy", Name: "PodDisruptionBudget"},
	{Group: "apiextensions.k8s.io", Name: "CustomResourceDefinition"}}

// strictRules returns what is kept of each kind; the entry of the zero Kind is for all others.
func strictRules() map[vedette.Kind]*allowed {
	other := &allowed{}
	other.allowEach("", strictCommon)
	rules := map[vedette.Kind]*allowed{{}: other}
	for kind, paths := range strictKinds {
		a := &allowed{}
		a.allowEach("", strictCommon)
		a.allowEach("", paths)
		rules[kind] = a
	}
	for kind, prefix := range strictTemplates {
		a := rules[kind]
		a.allowEach(prefix, "metadata.labels.** metadata.annotations.@ metadata.creationTimestamp")
		a.allowEach(prefix+"spec.", strictPodSpec)
		a.allowEach(prefix+"spec.containers.*.", strictContainer)
		a.allowEach(prefix+"spec.initContainers.*.", strictContainer)
	}
	for _, list := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
		rules[vedette.Kind{Name: "Pod"}].allowEach("status."+list+".*.", strictContainerStatus)
	}
	for _, kind := range strictWithConditions {
		rules[kind].allowEach("status.", strictConditions)
	}
	return rules
}

// allowedFor returns what is kept of a kind; nil if everything is that no rule redacts.
func (r *Redactor) allowedFor(kind vedette.Kind) *allowed {
	if r.strict == nil {
		return nil
	}
	if a := r.strict[kind]; a != nil {
		return a
	}
	return r.strict[vedette.Kind{}]
}

// IsStrict reports whether the redactor has the strict preset.
func (r *Redactor) IsStrict() bool { return r.strict != nil }

// KeepsAnnotation reports whether annotations with a key are kept in objects that are not Secrets, with their values.
func (r *Redactor) KeepsAnnotation(key string) bool {
	return !r.rules.annotations.match([]byte(key)) && (r.strict == nil || isStrictAnnotation([]byte(key)))
}

// HidesValues reports whether the redactor removes values of objects other than Secrets. What quotes such objects, such as the
// errors of API servers, may then quote them.
func (r *Redactor) HidesValues() bool {
	return r.strict != nil || r.rules.anyDepth() || len(r.rules.configMapKeys) > 0
}

// marksHere reports whether the marker is written into the annotations of the object.
func (p *redaction) marksHere(in role) bool { return p.allow != nil && in == roleAnnotations }

// openAnnotations adds the marker as the first annotation. The opening brace of the annotations is at i.
func (p *redaction) openAnnotations(i int) {
	p.flush(i + 1)
	p.emit([]byte(marker))
	p.marked = true
}

// closeMetadata adds annotations with the marker to metadata that has no annotations. The closing brace of the metadata is at i,
// and members is how many of its members are kept.
func (p *redaction) closeMetadata(i, members int) {
	if p.allow == nil || p.marked {
		return
	}
	p.flush(i)
	if members > 0 {
		p.emit([]byte{','})
	}
	p.emit([]byte(`"annotations":{` + marker + `}`))
	p.marked = true
}

// element walks an element of an array, or replaces it by null if it may not be kept: indexes must not change.
func (p *redaction) element(i int, star *node, as role, elements *allowed) (int, error) {
	if elements == nil {
		return p.value(i, star, as)
	}
	if c := p.at(i); !elements.accepts(c) && c != 'n' {
		return p.replaceValue(i, "null")
	}
	p.allow = elements
	return p.value(i, star, as)
}
