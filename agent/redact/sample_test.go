package redact

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/vedette-io/vedette"
)

var (
	pods    = vedette.Resource{Kind: vedette.Kind{Name: "Pod"}, Version: "v1", Plural: "pods", Namespaced: true}
	secrets = vedette.Resource{Kind: vedette.Kind{Name: "Secret"}, Version: "v1", Plural: "secrets", Namespaced: true}
)

// podProjections are similar to what a server requests for pods.
var podProjections = []vedette.Projection{{Kind: pods.Kind, Fields: []vedette.ProjectionField{
	{Name: "phase", Path: "status.phase"},
	{Name: "node", Path: "spec.nodeName"},
	{Name: "ip", Path: "status.podIP"},
	{Name: "images", Path: "spec.containers.*.image"},
	{Name: "ready", Path: "status.containerStatuses.*.ready"},
	{Name: "restarts", Path: "status.containerStatuses.*.restartCount"},
	{Name: "volumes", Path: "spec.volumes.#"},
	{Name: "types", Path: "status.conditions.*.type"},
	{Name: "states", Path: "status.conditions.*.status"},
	{Name: "deleted", Path: "metadata.deletionTimestamp"},
}}}

// typicalPod returns a pod of a Deployment with one container and a sidecar, as an API server
// sends it.
func typicalPod(tb testing.TB) []byte {
	tb.Helper()
	raw, err := json.Marshal(map[string]any{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": podMetadata(), "spec": podSpec(), "status": podStatus(),
	})
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

func podMetadata() map[string]any {
	return map[string]any{
		"name": "checkout-v012-7d9f8b6c5d-x2x7k", "generateName": "checkout-v012-7d9f8b6c5d-", "namespace": "shop",
		"uid": "1f6a8c1e-8a53-4c0e-9b7e-0b6f6d4c2a11", "resourceVersion": "184467440", "creationTimestamp": "2025-11-02T09:14:31Z",
		"labels": map[string]any{
			"app": "checkout", "pod-template-hash": "7d9f8b6c5d", "app.kubernetes.io/name": "checkout",
			"app.kubernetes.io/managed-by": "spinnaker", "tier": "backend",
		},
		"annotations": map[string]any{
			"artifact.spinnaker.io/location": "shop", "artifact.spinnaker.io/name": "checkout", "artifact.spinnaker.io/type": "kubernetes/deployment",
			"moniker.spinnaker.io/application": "checkout", "moniker.spinnaker.io/cluster": "deployment checkout",
			"prometheus.io/scrape": "true", "prometheus.io/port": "9102",
		},
		"ownerReferences": []any{map[string]any{
			"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "checkout-v012-7d9f8b6c5d",
			"uid": "7c1a5f1e-33b7-4ae6-8f07-5d0ad17b2b6e", "controller": true, "blockOwnerDeletion": true,
		}},
		"managedFields": []any{
			map[string]any{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
				"time": "2025-11-02T09:14:31Z", "fieldsType": "FieldsV1", "fieldsV1": specFields()},
			map[string]any{"manager": "kubelet", "operation": "Update", "apiVersion": "v1",
				"time": "2025-11-02T09:15:02Z", "fieldsType": "FieldsV1", "fieldsV1": statusFields(), "subresource": "status"},
		},
	}
}

type tree = map[string]any

func leaves(names ...string) tree {
	t := tree{}
	for _, n := range names {
		t["f:"+n] = tree{}
	}
	return t
}

func specFields() tree {
	container := leaves("image", "imagePullPolicy", "name", "terminationMessagePath", "terminationMessagePolicy", "securityContext")
	container["."] = tree{}
	container["f:env"] = tree{".": tree{}}
	for _, n := range []string{"JAVA_OPTS", "DATABASE_URL", "DATABASE_PASSWORD", "POD_IP", "REGION", "FEATURES", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		e := leaves("name", "value")
		e["."] = tree{}
		container["f:env"].(tree)[fmt.Sprintf(`k:{"name":%q}`, n)] = e
	}
	container["f:resources"] = tree{".": tree{}, "f:limits": leaves("cpu", "memory"), "f:requests": leaves("cpu", "memory")}
	container["f:livenessProbe"] = leaves("failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds")
	container["f:volumeMounts"] = tree{".": tree{}, `k:{"mountPath":"/etc/checkout"}`: leaves("mountPath", "name")}
	spec := leaves("dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName", "securityContext", "serviceAccount", "serviceAccountName", "terminationGracePeriodSeconds")
	container["f:readinessProbe"] = tree{".": tree{}, "f:httpGet": leaves("path", "port", "scheme"), "f:periodSeconds": tree{}}
	spec["f:affinity"] = tree{".": tree{}, "f:podAntiAffinity": leaves("preferredDuringSchedulingIgnoredDuringExecution")}
	spec["f:volumes"] = tree{".": tree{}, `k:{"name":"config"}`: tree{".": tree{}, "f:configMap": leaves("defaultMode", "name"), "f:name": tree{}},
		`k:{"name":"scratch"}`: tree{".": tree{}, "f:emptyDir": leaves("sizeLimit"), "f:name": tree{}}}
	spec["f:containers"] = tree{`k:{"name":"checkout"}`: container}
	return tree{"f:metadata": tree{"f:annotations": leaves("artifact.spinnaker.io/location", "prometheus.io/scrape"),
		"f:labels": leaves("app", "pod-template-hash", "tier"), "f:ownerReferences": tree{".": tree{}, `k:{"uid":"7c1a5f1e-33b7-4ae6-8f07-5d0ad17b2b6e"}`: tree{}}},
		"f:spec": spec}
}

func statusFields() tree {
	conditions := tree{}
	for _, c := range []string{"ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready"} {
		l := leaves("lastProbeTime", "lastTransitionTime", "status", "type")
		l["."] = tree{}
		conditions[fmt.Sprintf(`k:{"type":%q}`, c)] = l
	}
	status := leaves("observedGeneration", "qosClass", "containerStatuses", "hostIP", "hostIPs", "phase", "podIP", "startTime")
	status["f:conditions"] = conditions
	return tree{"f:status": status}
}

func podSpec() map[string]any {
	probe := func(path string) tree {
		return tree{"httpGet": tree{"path": path, "port": "http", "scheme": "HTTP"}, "initialDelaySeconds": 10,
			"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
	}
	mounts := []any{tree{"name": "config", "readOnly": true, "mountPath": "/etc/checkout"},
		tree{"name": "kube-api-access-9l2xs", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}}
	container := func(name, image string) tree {
		return tree{"name": name, "image": image, "ports": []any{tree{"name": "http", "containerPort": 8080, "protocol": "TCP"}},
			"env": []any{
				tree{"name": "JAVA_OPTS", "value": "-XX:MaxRAMPercentage=75 -Dfile.encoding=UTF-8"},
				tree{"name": "DATABASE_URL", "value": "jdbc:postgresql://db.shop.svc:5432/checkout"},
				tree{"name": "DATABASE_PASSWORD", "value": "correct horse battery staple"},
				tree{"name": "POD_IP", "valueFrom": tree{"fieldRef": tree{"apiVersion": "v1", "fieldPath": "status.podIP"}}},
				tree{"name": "REGION", "value": "eu-central-1"},
				tree{"name": "FEATURES", "value": "basket,coupons,express"},
				tree{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://collector.observability.svc:4317"},
			},
			"resources":    tree{"limits": tree{"cpu": "2", "memory": "1Gi"}, "requests": tree{"cpu": "250m", "memory": "512Mi"}},
			"volumeMounts": mounts, "livenessProbe": probe("/healthz"), "readinessProbe": probe("/ready"),
			"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent"}
	}
	return tree{
		"volumes": []any{
			tree{"name": "config", "configMap": tree{"name": "checkout-config-v004", "defaultMode": 420}},
			tree{"name": "scratch", "emptyDir": tree{"sizeLimit": "1Gi"}},
			tree{"name": "kube-api-access-9l2xs", "projected": tree{"defaultMode": 420, "sources": []any{
				tree{"serviceAccountToken": tree{"expirationSeconds": 3607, "path": "token"}},
				tree{"configMap": tree{"name": "kube-root-ca.crt", "items": []any{tree{"key": "ca.crt", "path": "ca.crt"}}}},
			}}},
		},
		"containers":    []any{container("checkout", "registry.example.com/shop/checkout:1.42.0")},
		"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "serviceAccountName": "checkout",
		"serviceAccount": "checkout", "nodeName": "ip-10-0-3-117.eu-central-1.compute.internal", "securityContext": tree{},
		"schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
		"topologySpreadConstraints": []any{tree{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
			"labelSelector": tree{"matchLabels": tree{"app": "checkout", "tier": "backend"}}}},
		"affinity": tree{"podAntiAffinity": tree{"preferredDuringSchedulingIgnoredDuringExecution": []any{tree{"weight": 100,
			"podAffinityTerm": tree{"topologyKey": "kubernetes.io/hostname", "labelSelector": tree{"matchLabels": tree{"app": "checkout"}}}}}}},
		"tolerations": []any{
			tree{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
			tree{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
		},
	}
}

func podStatus() map[string]any {
	var conditions []any
	for _, c := range []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		conditions = append(conditions, tree{"type": c, "status": "True", "lastProbeTime": nil, "lastTransitionTime": "2025-11-02T09:15:02Z"})
	}
	return tree{"phase": "Running", "conditions": conditions, "hostIP": "10.0.3.117", "podIP": "10.0.12.43",
		"hostIPs": []any{tree{"ip": "10.0.3.117"}}, "podIPs": []any{tree{"ip": "10.0.12.43"}}, "startTime": "2025-11-02T09:14:31Z", "qosClass": "Burstable",
		"containerStatuses": []any{tree{"name": "checkout", "state": tree{"running": tree{"startedAt": "2025-11-02T09:14:58Z"}}, "lastState": tree{},
			"ready": true, "restartCount": 0, "started": true, "image": "registry.example.com/shop/checkout:1.42.0",
			"imageID":     "registry.example.com/shop/checkout@sha256:9b6f1c2c6d2b7a0b1a7d9fb3f1c8e0a4a2e8d1f0c3b59c55d1a1be0c2f64f7ad",
			"containerID": "containerd://4d0e6c8a5c63a7f0d21c7ebf6f4f6d7a4cc1b0c9c5f9c2b1df6c3e9d3ff2a871"}}}
}
