package readtest

import (
	"fmt"
	"time"
)

// TimestampAgo returns the creationTimestamp of an object that was created d ago. Add half a unit
// of the printed age, so that a slow test prints the same age.
func TimestampAgo(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }

// Pod returns the manifest of a running Pod of an application, which was created 122.5 hours ago.
func Pod(namespace, name, app string) string {
	return PodOfAge(namespace, name, app, 122*time.Hour+30*time.Minute)
}

// PodOfAge returns the manifest of a running Pod of an application, which was created that long ago.
func PodOfAge(namespace, name, app string, age time.Duration) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"creationTimestamp":%q,
		"labels":{"app":%q,"pod-template-hash":"6c9f4"},"annotations":{"moniker.spinnaker.io/application":%q,"moniker.spinnaker.io/cluster":"replicaSet %s"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"%s-6c9f4","uid":"11111111-0000-4000-8000-000000000001","controller":true}]},
		"spec":{"nodeName":"node-1","containers":[{"name":"web","image":"registry.io/%s:1.4.2","ports":[{"containerPort":8080}]}]},
		"status":{"phase":"Running","podIP":"10.0.0.7","conditions":[{"type":"Initialized","status":"True"},{"type":"Ready","status":"True"}],
		"containerStatuses":[{"name":"web","ready":true,"restartCount":0,"state":{"running":{"startedAt":%q}}}]}}`,
		name, namespace, TimestampAgo(age), app, app, app, app, app, TimestampAgo(122*time.Hour))
}

// CrashingPod returns the manifest of a Pod in CrashLoopBackOff.
func CrashingPod(namespace, name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q,"creationTimestamp":%q,"labels":{"app":"broken"}},
		"spec":{"nodeName":"node-2","containers":[{"name":"web","image":"registry.io/broken:1"}]},
		"status":{"phase":"Running","podIP":"10.0.0.8","containerStatuses":[{"name":"web","ready":false,"restartCount":12,
		"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1,"finishedAt":%q}}}]}}`,
		name, namespace, TimestampAgo(3*time.Hour+30*time.Minute+30*time.Second), TimestampAgo(12*time.Minute+30*time.Second))
}

// Deployment returns the manifest of a Deployment with one replica that is not ready.
func Deployment(namespace, name string, replicas int) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"namespace":%q,"generation":2,"creationTimestamp":%q,"labels":{"app":%q}},
		"spec":{"replicas":%d,"selector":{"matchLabels":{"app":%q}},"template":{"metadata":{"creationTimestamp":null,"labels":{"app":%q}},
		"spec":{"containers":[{"name":"web","image":"registry.io/%s:1.4.2","resources":{"limits":{"cpu":"1"}},"envFrom":[{"configMapRef":{"name":"%s-env-v001"}}]}]}}},
		"status":{"observedGeneration":2,"replicas":%d,"updatedReplicas":%d,"readyReplicas":%d,"availableReplicas":%d,
		"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","message":"Deployment has minimum availability."}]}}`,
		name, namespace, TimestampAgo(40*24*time.Hour+time.Hour), name, replicas, name, name, name, name, replicas, replicas, replicas-1,
		replicas-1)
}

func Node(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"creationTimestamp":%q,"labels":{"node-role.kubernetes.io/worker":""}},
		"status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"kubeletVersion":"v1.36.3"},"addresses":[{"type":"InternalIP","address":"10.1.0.1"}]}}`,
		name, TimestampAgo(800*24*time.Hour+time.Hour))
}
