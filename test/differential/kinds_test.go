//go:build linux

package differential

import "maps"

// kind is a kind of objects with a template of its manifests.
type kind struct {
	apiVersion, name string
	path             string // in the API, for example /apis/apps/v1
	plural           string
	cluster          bool   // cluster-scoped
	secret           bool   // agents read only its metadata
	keepOnDelete     bool   // because deleting it needs controllers, which do not run
	hasScale         bool   // has a scale subresource
	custom           bool   // does not accept strategic merge patches
	template         object // without metadata
	foreignFields    object // what other managers change, besides metadata
}

// manifest generates a manifest without a name.
func (k *kind) manifest(g *generator) object {
	m := g.object("", k.template)
	m["apiVersion"], m["kind"] = k.apiVersion, k.name
	m["metadata"] = g.object("/metadata", object{
		"labels":      object{"app": oneOf{"a", "b"}, "tier": "web", "team": oneOf{"x", "y"}},
		"annotations": object{"note": oneOf{"1", "2"}, "other": "x"}})
	return m
}

// foreignTemplate returns the template of patches by another manager.
func (k *kind) foreignTemplate() object {
	t := object{"metadata": object{
		"labels":      object{"injected": oneOf{"1", "2"}, "team": "z"},
		"annotations": object{"injected": oneOf{"1", "2"}, "note": "3"}}}
	maps.Copy(t, k.foreignFields)
	return t
}

var container = object{
	"!name": "main", "!image": oneOf{"example.com/main:1", "example.com/main:2"},
	"command": oneOf{[]any{"run"}, []any{"run", "fast"}, []any{"fast", "run"}}, "args": oneOf{[]any{"-v"}, []any{}},
	"env": someOf{object{"!name": "A", "value": oneOf{"1", "2", ""}}, object{"!name": "B", "value": "b"},
		object{"!name": "C", "!valueFrom": object{"!fieldRef": object{"!fieldPath": oneOf{"metadata.name", "metadata.namespace"}}}}},
	"envFrom": someOf{object{"!configMapRef": object{"!name": oneOf{"x", "y"}}}, object{"!secretRef": object{"!name": "z"}, "prefix": "P_"}},
	"ports": someOf{object{"!containerPort": 80, "name": oneOf{"http", "web"}}, object{"!containerPort": 81, "protocol": oneOf{"TCP", "UDP"}},
		object{"!containerPort": 80, "!protocol": "UDP", "!name": "udp"}},
	"resources":       object{"limits": object{"cpu": oneOf{"100m", "0.2", 1}, "memory": "64Mi"}, "requests": object{"cpu": "50m", "memory": oneOf{"32Mi", "33554432"}}},
	"volumeMounts":    someOf{object{"!name": "v", "!mountPath": "/a", "readOnly": oneOf{true, false}}, object{"!name": "v", "!mountPath": "/b", "subPath": "b"}},
	"livenessProbe":   object{"!httpGet": object{"path": oneOf{"/", "/health"}, "!port": oneOf{80, "http"}}, "periodSeconds": oneOf{5, 10}, "timeoutSeconds": 2},
	"lifecycle":       object{"preStop": object{"!exec": object{"!command": oneOf{[]any{"a"}, []any{"b"}}}}},
	"securityContext": object{"runAsUser": oneOf{1000, 0}, "capabilities": object{"drop": oneOf{[]any{"ALL"}, []any{"NET_RAW"}}, "add": oneOf{[]any{"KILL"}}}},
}

func podSpec(more object) object {
	spec := object{
		"!containers": someOf{required{container}, object{"!name": "side", "!image": "example.com/side:1", "env": someOf{object{"!name": "S", "value": oneOf{"1", "2"}}}},
			object{"!name": "third", "!image": "example.com/third:1"}},
		"initContainers":                someOf{object{"!name": "init", "!image": oneOf{"example.com/init:1", "example.com/init:2"}}},
		"!volumes":                      someOf{required{object{"!name": "v", "!emptyDir": oneOf{object{}, object{"medium": "Memory"}}}}, object{"!name": "w", "!configMap": object{"!name": "c", "optional": true}}},
		"terminationGracePeriodSeconds": oneOf{10, 30}, "nodeSelector": object{"disk": oneOf{"ssd", "hdd"}, "zone": "a"},
		"tolerations":      someOf{object{"!key": "a", "!operator": "Exists"}, object{"!key": "b", "!operator": "Equal", "value": "1", "effect": "NoSchedule"}},
		"securityContext":  object{"fsGroup": oneOf{1, 2}, "runAsNonRoot": oneOf{true, false}},
		"imagePullSecrets": someOf{object{"!name": "p"}, object{"!name": "q"}}, "hostAliases": someOf{object{"!ip": "10.0.0.1", "hostnames": oneOf{[]any{"a"}, []any{"a", "b"}}}},
		"affinity": object{"nodeAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": someOf{
			object{"!weight": oneOf{1, 2}, "!preference": object{"!matchExpressions": []any{object{"key": "k", "operator": "Exists"}}}}}}},
		"topologySpreadConstraints": someOf{object{"!maxSkew": oneOf{1, 2}, "!topologyKey": "zone", "!whenUnsatisfiable": oneOf{"DoNotSchedule", "ScheduleAnyway"}}},
		"dnsPolicy":                 oneOf{"Default", "ClusterFirst"},
	}
	maps.Copy(spec, more)
	return spec
}

func podTemplate(more object) object {
	return object{"!metadata": object{"!labels": object{"!app": "x", "version": oneOf{"1", "2"}}, "annotations": object{"hash": oneOf{"1", "2"}, "mesh": "on"}}, "!spec": podSpec(more)}
}

// podForeignFields is what other managers change in pod templates.
var podForeignFields = object{"spec": object{"!template": object{
	"metadata": object{"annotations": object{"kubectl.kubernetes.io/restartedAt": oneOf{"2024-01-01", "2024-01-02"}}},
	"spec": object{"!containers": someOf{required{object{"!name": "injected", "!image": "example.com/injected:1"}}, object{"!name": "main", "!image": "example.com/main:3"},
		object{"!name": "main", "!env": someOf{required{object{"!name": "INJECTED", "value": "1"}}, object{"!name": "A", "!value": "9"}}}}}}}}

var selector = object{"!matchLabels": object{"!app": "x"}}

var kinds = []*kind{
	{apiVersion: "v1", name: "ConfigMap", path: "/api/v1", plural: "configmaps",
		template:      object{"data": object{"a": oneOf{"1", "2", ""}, "b": "b", "c": oneOf{"x", "y"}}, "binaryData": object{"bin": oneOf{"AAEC", "AAED"}}},
		foreignFields: object{"data": object{"injected": oneOf{"1", "2"}, "a": "3"}}},
	{apiVersion: "v1", name: "ConfigMap", path: "/api/v1", plural: "configmaps", // small, so that it is often empty
		template:      object{"data": object{"a": oneOf{"1", "2"}}},
		foreignFields: object{"!data": object{"injected": oneOf{"1", "2"}}}},
	{apiVersion: "v1", name: "Secret", path: "/api/v1", plural: "secrets", secret: true,
		template:      object{"!data": object{"!kept": "a2VwdA==", "a": oneOf{"YQ==", "Yg=="}, "b": "Yg==", "c": "Yw=="}, "type": "Opaque", "stringData": object{"text": oneOf{"1", "2"}}},
		foreignFields: object{"data": object{"injected": "aQ=="}}},
	{apiVersion: "v1", name: "Service", path: "/api/v1", plural: "services",
		template: object{"!spec": object{"selector": object{"a": oneOf{"1", "2"}, "b": "b", "c": "c"}, "type": oneOf{"ClusterIP", "ClusterIP", "ExternalName"}, "externalName": "example.com",
			"!ports":          someOf{required{object{"!name": "http", "!port": 80, "targetPort": oneOf{80, "http"}}}, object{"!name": "https", "!port": oneOf{443, 8443}, "protocol": "TCP"}, object{"!name": "udp", "!port": 80, "!protocol": "UDP"}},
			"sessionAffinity": oneOf{"None", "ClientIP"}, "publishNotReadyAddresses": oneOf{true, false}, "externalIPs": oneOf{[]any{"192.0.2.1"}, []any{"192.0.2.2", "192.0.2.1"}}}},
		foreignFields: object{"spec": object{"selector": object{"injected": "1", "a": "3"}, "ports": someOf{object{"!name": "injected", "!port": 90}}}}},
	{apiVersion: "v1", name: "ServiceAccount", path: "/api/v1", plural: "serviceaccounts",
		template:      object{"automountServiceAccountToken": oneOf{true, false}, "secrets": someOf{object{"!name": "a"}, object{"!name": "b"}}, "imagePullSecrets": someOf{object{"!name": "p"}, object{"!name": "q"}}},
		foreignFields: object{"imagePullSecrets": someOf{required{object{"!name": "injected"}}}}},
	{apiVersion: "v1", name: "Pod", path: "/api/v1", plural: "pods", template: object{"!spec": podSpec(object{"!automountServiceAccountToken": false})}},
	{apiVersion: "v1", name: "PersistentVolumeClaim", path: "/api/v1", plural: "persistentvolumeclaims", keepOnDelete: true,
		template: object{"!spec": object{"!accessModes": []any{"ReadWriteOnce"}, "storageClassName": "s", "!resources": object{"!requests": object{"!storage": oneOf{"1Gi", "2Gi"}}}}}},
	{apiVersion: "v1", name: "LimitRange", path: "/api/v1", plural: "limitranges",
		template: object{"!spec": object{"!limits": someOf{object{"!type": "example.com/Other", "max": object{"cpu": oneOf{"9", "8"}, "memory": "9Gi"}}, object{"!type": "PersistentVolumeClaim", "max": object{"storage": "9Gi"}}}}}},
	{apiVersion: "apps/v1", name: "Deployment", path: "/apis/apps/v1", plural: "deployments", hasScale: true, foreignFields: podForeignFields,
		template: object{"!spec": object{"replicas": oneOf{1, 2, 0}, "!selector": selector, "minReadySeconds": oneOf{0, 5}, "revisionHistoryLimit": oneOf{3, 10}, "paused": oneOf{true, false},
			"strategy":  oneOf{object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": "50%"}}, object{"type": "Recreate"}, object{"type": "Recreate", "rollingUpdate": nil}, object{}},
			"!template": podTemplate(nil)}}},
	{apiVersion: "apps/v1", name: "StatefulSet", path: "/apis/apps/v1", plural: "statefulsets", hasScale: true, foreignFields: podForeignFields,
		template: object{"!spec": object{"replicas": oneOf{1, 2}, "!selector": selector, "!serviceName": "s", "podManagementPolicy": "Parallel", "!template": podTemplate(nil),
			"updateStrategy": oneOf{object{"type": "OnDelete"}, object{"type": "RollingUpdate", "rollingUpdate": object{"partition": 1}}}}}},
	{apiVersion: "apps/v1", name: "DaemonSet", path: "/apis/apps/v1", plural: "daemonsets", foreignFields: podForeignFields,
		template: object{"!spec": object{"!selector": selector, "!template": podTemplate(nil), "updateStrategy": object{"type": oneOf{"OnDelete", "RollingUpdate"}}}}},
	{apiVersion: "batch/v1", name: "Job", path: "/apis/batch/v1", plural: "jobs",
		template: object{"!spec": object{"parallelism": oneOf{1, 2}, "completions": 3, "backoffLimit": oneOf{1, 2}, "suspend": true,
			"!template": object{"!spec": object{"!restartPolicy": "Never", "!containers": []any{object{"name": "main", "image": "example.com/main:1"}}}}}}},
	{apiVersion: "batch/v1", name: "CronJob", path: "/apis/batch/v1", plural: "cronjobs",
		template: object{"!spec": object{"!schedule": oneOf{"0 0 1 1 *", "0 0 2 1 *"}, "suspend": oneOf{true, false}, "concurrencyPolicy": oneOf{"Forbid", "Allow"}, "timeZone": oneOf{"Etc/UTC"},
			"!jobTemplate": object{"!spec": object{"backoffLimit": oneOf{1, 2}, "!template": podTemplate(object{"!restartPolicy": "Never"})}}}}},
	{apiVersion: "networking.k8s.io/v1", name: "Ingress", path: "/apis/networking.k8s.io/v1", plural: "ingresses",
		template: object{"!spec": object{"ingressClassName": oneOf{"a", "b"}, "tls": someOf{object{"hosts": oneOf{[]any{"a"}, []any{"b", "c"}}, "!secretName": "t"}},
			"!defaultBackend": object{"!service": object{"!name": oneOf{"a", "b"}, "!port": oneOf{object{"number": 80}, object{"name": "http"}}}},
			"rules":           someOf{object{"!host": "a.example.com", "http": object{"!paths": someOf{required{object{"!path": "/", "!pathType": "Prefix", "!backend": object{"!service": object{"!name": "a", "!port": object{"number": oneOf{80, 81}}}}}}}}}, object{"!host": "b.example.com"}}}}},
	{apiVersion: "networking.k8s.io/v1", name: "NetworkPolicy", path: "/apis/networking.k8s.io/v1", plural: "networkpolicies",
		template: object{"!spec": object{"!podSelector": object{"matchLabels": object{"a": oneOf{"1", "2"}, "b": "b"}}, "policyTypes": oneOf{[]any{"Ingress"}, []any{"Ingress", "Egress"}},
			"ingress": someOf{object{"ports": someOf{object{"!port": oneOf{80, "http"}}}}, object{"from": someOf{object{"!podSelector": object{}}}}}}}},
	{apiVersion: "policy/v1", name: "PodDisruptionBudget", path: "/apis/policy/v1", plural: "poddisruptionbudgets",
		template: object{"!spec": object{"!selector": object{"matchLabels": object{"a": oneOf{"1", "2"}, "b": "b"}}, "maxUnavailable": oneOf{1, "50%"}}}},
	{apiVersion: "autoscaling/v2", name: "HorizontalPodAutoscaler", path: "/apis/autoscaling/v2", plural: "horizontalpodautoscalers",
		template: object{"!spec": object{"!maxReplicas": oneOf{5, 6}, "minReplicas": oneOf{1, 2}, "!scaleTargetRef": object{"!kind": "Deployment", "!name": "d", "apiVersion": "apps/v1"},
			"metrics":  someOf{object{"!type": "Resource", "!resource": object{"!name": "cpu", "!target": object{"!type": "Utilization", "!averageUtilization": oneOf{50, 60}}}}},
			"behavior": object{"scaleDown": object{"stabilizationWindowSeconds": oneOf{10, 20}, "policies": someOf{object{"!type": "Pods", "!value": 1, "!periodSeconds": oneOf{15, 30}}}}}}}},
	{apiVersion: "rbac.authorization.k8s.io/v1", name: "Role", path: "/apis/rbac.authorization.k8s.io/v1", plural: "roles",
		template: object{"rules": someOf{object{"!apiGroups": []any{""}, "!resources": oneOf{[]any{"pods"}, []any{"pods", "secrets"}}, "!verbs": oneOf{[]any{"get"}, []any{"*"}}}, object{"!apiGroups": []any{"apps"}, "!resources": []any{"deployments"}, "!verbs": []any{"get"}, "resourceNames": []any{"x"}}}}},
	{apiVersion: "rbac.authorization.k8s.io/v1", name: "RoleBinding", path: "/apis/rbac.authorization.k8s.io/v1", plural: "rolebindings",
		template: object{"!roleRef": object{"!apiGroup": "rbac.authorization.k8s.io", "!kind": "Role", "!name": oneOf{"r", "r", "r", "q"}},
			"subjects": someOf{object{"!kind": "ServiceAccount", "!name": "a", "!namespace": oneOf{"x", "y"}}, object{"!kind": "User", "!name": oneOf{"u", "v"}, "apiGroup": "rbac.authorization.k8s.io"}}}},
	{apiVersion: "rbac.authorization.k8s.io/v1", name: "ClusterRole", path: "/apis/rbac.authorization.k8s.io/v1", plural: "clusterroles", cluster: true,
		template: object{"rules": someOf{object{"!apiGroups": []any{""}, "!resources": []any{"nodes"}, "!verbs": oneOf{[]any{"get"}, []any{"list", "get"}}}},
			"aggregationRule": object{"!clusterRoleSelectors": someOf{object{"!matchLabels": object{"a": "1", "b": "2"}}}}}},
	{apiVersion: "scheduling.k8s.io/v1", name: "PriorityClass", path: "/apis/scheduling.k8s.io/v1", plural: "priorityclasses", cluster: true,
		template: object{"!value": oneOf{5, 5, 5, 6}, "description": oneOf{"a", "b"}, "globalDefault": false}},
	{apiVersion: "differential.example.com/v1", name: "Widget", path: "/apis/differential.example.com/v1", plural: "widgets", custom: true,
		template: widgetTemplate, foreignFields: object{"spec": object{"granular": object{"injected": "1", "a": "3"}}}},
	{apiVersion: "differential.example.com/v1", name: "Loose", path: "/apis/differential.example.com/v1", plural: "looses", custom: true,
		template:      object{"spec": object{"n": oneOf{1, 2, 1.5}, "deep": object{"a": oneOf{"1", "2"}, "b": object{"c": oneOf{true, false}, "d": nil}}, "list": someOf{1, "x", object{"a": oneOf{1, 2}, "b": nil}}, "text": oneOf{"a", "ü", ""}}},
		foreignFields: object{"spec": object{"deep": object{"injected": "1"}}}},
}

var widgetTemplate = object{"spec": object{
	"size": oneOf{1, 2}, "nullable": oneOf{"a", nil}, "defaulted": oneOf{"x", "y"},
	"granular": object{"a": oneOf{"1", "2"}, "b": "b"}, "atomic": object{"a": oneOf{"1", "2"}, "b": "b"},
	"set":   someOf{"x", "y", "z"},
	"items": someOf{object{"!name": "a", "value": oneOf{1, 2}}, object{"!name": "b", "value": 1}, object{"!name": "c"}},
	"plain": someOf{object{"name": "a", "value": oneOf{1, 2}}, object{"name": "b"}}}}

// definition returns the CustomResourceDefinition of a kind.
func definition(k *kind, spec object) object {
	return object{"metadata": object{"name": k.plural + ".differential.example.com"},
		"spec": object{"group": "differential.example.com", "scope": "Namespaced", "names": object{"kind": k.name, "plural": k.plural},
			"versions": []any{object{"name": "v1", "served": true, "storage": true, "schema": object{
				"openAPIV3Schema": object{"type": "object", "properties": object{"spec": spec}}}}}}}
}

var (
	stringSchema = object{"type": "string"}
	itemSchema   = object{"type": "object", "required": []any{"name"}, "properties": object{"name": stringSchema, "value": object{"type": "integer"}}}
	looseSpec    = object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	widgetProps  = object{"size": object{"type": "integer"}, "nullable": object{"type": "string", "nullable": true}, "defaulted": object{"type": "string", "default": "d"},
		"granular": object{"type": "object", "additionalProperties": stringSchema},
		"atomic":   object{"type": "object", "additionalProperties": stringSchema, "x-kubernetes-map-type": "atomic"},
		"set":      object{"type": "array", "items": stringSchema, "x-kubernetes-list-type": "set"},
		"items":    object{"type": "array", "items": itemSchema, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"}},
		"plain":    object{"type": "array", "items": itemSchema}}
	widgetSpec = object{"type": "object", "properties": widgetProps}
)
