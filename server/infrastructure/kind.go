package infrastructure

import (
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// The kinds that list views show, by what Spinnaker calls them. They are those of Clouddriver's
// default cache; custom kinds never belong to them.
var (
	ServerGroupKinds   = []vedette.Kind{replicaSet, daemonSet, statefulSet, job, cronJob}
	ManagerKinds       = []vedette.Kind{deployment}
	LoadBalancerKinds  = []vedette.Kind{service, ingress}
	SecurityGroupKinds = []vedette.Kind{{Group: "networking.k8s.io", Name: "NetworkPolicy"}}
	InstanceKinds      = []vedette.Kind{{Name: "Pod"}}

	// LogicalKinds are the kinds that belong to an application.
	LogicalKinds = slices.Concat(ServerGroupKinds, ManagerKinds, LoadBalancerKinds, SecurityGroupKinds)
)

var (
	replicaSet  = vedette.Kind{Group: "apps", Name: "ReplicaSet"}
	daemonSet   = vedette.Kind{Group: "apps", Name: "DaemonSet"}
	statefulSet = vedette.Kind{Group: "apps", Name: "StatefulSet"}
	deployment  = vedette.Kind{Group: "apps", Name: "Deployment"}
	job         = vedette.Kind{Group: "batch", Name: "Job"}
	cronJob     = vedette.Kind{Group: "batch", Name: "CronJob"}
	service     = vedette.Kind{Name: "Service"}
	ingress     = vedette.Kind{Group: "networking.k8s.io", Name: "Ingress"}
)

// selectedKinds are the kinds that get traffic from Services.
var selectedKinds = []vedette.Kind{replicaSet, statefulSet}

// FindKind returns the kind that list views show under a name, in any case and by Clouddriver's
// aliases, for example "rs".
func FindKind(name string) (vedette.Kind, bool) {
	wanted := manifest.KindName(vedette.Kind{Name: name})
	for _, kind := range slices.Concat(LogicalKinds, InstanceKinds) {
		if manifest.KindName(kind) == wanted {
			return kind, true
		}
	}
	return vedette.Kind{}, false
}

// FullName returns an object's name as Spinnaker writes it, for example "replicaSet web-v003".
func FullName(o *Object) string { return KindName(o.Kind) + " " + o.Name }

// KindName is manifest.KindName, which takes longer for the kinds of which views show thousands.
func KindName(kind vedette.Kind) string {
	if name, ok := kindNames[kind]; ok {
		return name
	}
	return manifest.KindName(kind)
}

var kindNames = func() map[vedette.Kind]string {
	names := map[vedette.Kind]string{}
	for _, kind := range slices.Concat(LogicalKinds, InstanceKinds) {
		names[kind] = manifest.KindName(kind)
	}
	return names
}()
