//go:build linux

package differential

// kind is a kind of objects, with a template of its manifests.
type kind struct {
	apiVersion, name string
	path             string // of the API: /apis/apps/v1
	plural           string
	cluster          bool   // cluster-scoped
	secret           bool   // asked for as metadata only by agents
	stays            bool   // a deletion takes controllers, which are not there
	scales           bool   // has a Scale
	custom           bool   // takes no strategic merge patches
	template         object // without metadata
	others           object // what other managers change, beside metadata
}

// manifest makes a manifest, without a name.
func (k *kind) manifest(g *generator) object {
	m := g.object("", k.template)
	m["apiVersion"], m["kind"] = k.apiVersion, k.name
	m["metadata"] = g.object("/metadata", object{
		"labels":      object{"app": one{"a", "b"}, "tier": "web", "team": one{"x", "y"}},
		"annotations": object{"note": one{"1", "2"}, "other": "x"}})
	return m
}

// foreign is the template of patches by another manager.
func (k *kind) foreign() object {
	t := object{"metadata": object{
		"labels":      object{"injected": one{"1", "2"}, "team": "z"},
		"annotations": object{"injected": one{"1", "2"}, "note": "3"}}}
	for name, value := range k.others {
		t[name] = value
	}
	return t
}

var container = object{
	"!name": "main", "!image": one{"example.com/main:1", "example.com/main:2"},
	"command": one{[]any{"run"}, []any{"run", "fast"}, []any{"fast", "run"}}, "args": one{[]any{"-v"}, []any{}},
	"env": list{object{"!name": "A", "value": one{"1", "2", ""}}, object{"!name": "B", "value": "b"},
		object{"!name": "C", "!valueFrom": object{"!fieldRef": object{"!fieldPath": one{"metadata.name", "metadata.namespace"}}}}},
	"envFrom": list{object{"!configMapRef": object{"!name": one{"x", "y"}}}, object{"!secretRef": object{"!name": "z"}, "prefix": "P_"}},
	"ports": list{object{"!containerPort": 80, "name": one{"http", "web"}}, object{"!containerPort": 81, "protocol": one{"TCP", "UDP"}},
		object{"!containerPort": 80, "!protocol": "UDP", "!name": "udp"}},
	"resources":       object{"limits": object{"cpu": one{"100m", "0.2", 1}, "memory": "64Mi"}, "requests": object{"cpu": "50m", "memory": one{"32Mi", "33554432"}}},
	"volumeMounts":    list{object{"!name": "v", "!mountPath": "/a", "readOnly": one{true, false}}, object{"!name": "v", "!mountPath": "/b", "subPath": "b"}},
	"livenessProbe":   object{"!httpGet": object{"path": one{"/", "/health"}, "!port": one{80, "http"}}, "periodSeconds": one{5, 10}, "timeoutSeconds": 2},
	"lifecycle":       object{"preStop": object{"!exec": object{"!command": one{[]any{"a"}, []any{"b"}}}}},
	"securityContext": object{"runAsUser": one{1000, 0}, "capabilities": object{"drop": one{[]any{"ALL"}, []any{"NET_RAW"}}, "add": one{[]any{"KILL"}}}},
}

func podSpec(more object) object {
	spec := object{
		"!containers": list{must{container}, object{"!name": "side", "!image": "example.com/side:1", "env": list{object{"!name": "S", "value": one{"1", "2"}}}},
			object{"!name": "third", "!image": "example.com/third:1"}},
		"initContainers":                list{object{"!name": "init", "!image": one{"example.com/init:1", "example.com/init:2"}}},
		"!volumes":                      list{must{object{"!name": "v", "!emptyDir": one{object{}, object{"medium": "Memory"}}}}, object{"!name": "w", "!configMap": object{"!name": "c", "optional": true}}},
		"terminationGracePeriodSeconds": one{10, 30}, "nodeSelector": object{"disk": one{"ssd", "hdd"}, "zone": "a"},
		"tolerations":      list{object{"!key": "a", "!operator": "Exists"}, object{"!key": "b", "!operator": "Equal", "value": "1", "effect": "NoSchedule"}},
		"securityContext":  object{"fsGroup": one{1, 2}, "runAsNonRoot": one{true, false}},
		"imagePullSecrets": list{object{"!name": "p"}, object{"!name": "q"}}, "hostAliases": list{object{"!ip": "10.0.0.1", "hostnames": one{[]any{"a"}, []any{"a", "b"}}}},
		"affinity": object{"nodeAffinity": object{"preferredDuringSchedulingIgnoredDuringExecution": list{
			object{"!weight": one{1, 2}, "!preference": object{"!matchExpressions": []any{object{"key": "k", "operator": "Exists"}}}}}}},
		"topologySpreadConstraints": list{object{"!maxSkew": one{1, 2}, "!topologyKey": "zone", "!whenUnsatisfiable": one{"DoNotSchedule", "ScheduleAnyway"}}},
		"dnsPolicy":                 one{"Default", "ClusterFirst"},
	}
	for name, value := range more {
		spec[name] = value
	}
	return spec
}

func podTemplate(more object) object {
	return object{"!metadata": object{"!labels": object{"!app": "x", "version": one{"1", "2"}}, "annotations": object{"hash": one{"1", "2"}, "mesh": "on"}}, "!spec": podSpec(more)}
}

// podOthers is what others change in pods of workloads.
var podOthers = object{"spec": object{"!template": object{
	"metadata": object{"annotations": object{"kubectl.kubernetes.io/restartedAt": one{"2024-01-01", "2024-01-02"}}},
	"spec": object{"!containers": list{must{object{"!name": "injected", "!image": "example.com/injected:1"}}, object{"!name": "main", "!image": "example.com/main:3"},
		object{"!name": "main", "!env": list{must{object{"!name": "INJECTED", "value": "1"}}, object{"!name": "A", "!value": "9"}}}}}}}}

var selector = object{"!matchLabels": object{"!app": "x"}}

var kinds = []*kind{
	{apiVersion: "v1", name: "ConfigMap", path: "/api/v1", plural: "configmaps",
		template: object{"data": object{"a": one{"1", "2", ""}, "b": "b", "c": one{"x", "y"}}, "binaryData": object{"bin": one{"AAEC", "AAED"}}},
		others:   object{"data": object{"injected": one{"1", "2"}, "a": "3"}}},
	{apiVersion: "v1", name: "ConfigMap", path: "/api/v1", plural: "configmaps", // small, so that it is empty often
		template: object{"data": object{"a": one{"1", "2"}}},
		others:   object{"!data": object{"injected": one{"1", "2"}}}},
	{apiVersion: "v1", name: "Secret", path: "/api/v1", plural: "secrets", secret: true,
		template: object{"!data": object{"!kept": "a2VwdA==", "a": one{"YQ==", "Yg=="}, "b": "Yg==", "c": "Yw=="}, "type": "Opaque", "stringData": object{"text": one{"1", "2"}}},
		others:   object{"data": object{"injected": "aQ=="}}},
	{apiVersion: "v1", name: "Service", path: "/api/v1", plural: "services",
		template: object{"!spec": object{"selector": object{"a": one{"1", "2"}, "b": "b", "c": "c"}, "type": one{"ClusterIP", "ClusterIP", "ExternalName"}, "externalName": "example.com",
			"!ports":          list{must{object{"!name": "http", "!port": 80, "targetPort": one{80, "http"}}}, object{"!name": "https", "!port": one{443, 8443}, "protocol": "TCP"}, object{"!name": "udp", "!port": 80, "!protocol": "UDP"}},
			"sessionAffinity": one{"None", "ClientIP"}, "publishNotReadyAddresses": one{true, false}, "externalIPs": one{[]any{"192.0.2.1"}, []any{"192.0.2.2", "192.0.2.1"}}}},
		others: object{"spec": object{"selector": object{"injected": "1", "a": "3"}, "ports": list{object{"!name": "injected", "!port": 90}}}}},
	{apiVersion: "v1", name: "ServiceAccount", path: "/api/v1", plural: "serviceaccounts",
		template: object{"automountServiceAccountToken": one{true, false}, "secrets": list{object{"!name": "a"}, object{"!name": "b"}}, "imagePullSecrets": list{object{"!name": "p"}, object{"!name": "q"}}},
		others:   object{"imagePullSecrets": list{must{object{"!name": "injected"}}}}},
	{apiVersion: "v1", name: "Pod", path: "/api/v1", plural: "pods", template: object{"!spec": podSpec(object{"!automountServiceAccountToken": false})}},
	{apiVersion: "v1", name: "PersistentVolumeClaim", path: "/api/v1", plural: "persistentvolumeclaims", stays: true,
		template: object{"!spec": object{"!accessModes": []any{"ReadWriteOnce"}, "storageClassName": "s", "!resources": object{"!requests": object{"!storage": one{"1Gi", "2Gi"}}}}}},
	{apiVersion: "v1", name: "LimitRange", path: "/api/v1", plural: "limitranges",
		template: object{"!spec": object{"!limits": list{object{"!type": "example.com/Other", "max": object{"cpu": one{"9", "8"}, "memory": "9Gi"}}, object{"!type": "PersistentVolumeClaim", "max": object{"storage": "9Gi"}}}}}},
	{apiVersion: "apps/v1", name: "Deployment", path: "/apis/apps/v1", plural: "deployments", scales: true, others: podOthers,
		template: object{"!spec": object{"replicas": one{1, 2, 0}, "!selector": selector, "minReadySeconds": one{0, 5}, "revisionHistoryLimit": one{3, 10}, "paused": one{true, false},
			"strategy":  one{object{"type": "RollingUpdate", "rollingUpdate": object{"maxSurge": "50%"}}, object{"type": "Recreate"}, object{"type": "Recreate", "rollingUpdate": nil}, object{}},
			"!template": podTemplate(nil)}}},
	{apiVersion: "apps/v1", name: "StatefulSet", path: "/apis/apps/v1", plural: "statefulsets", scales: true, others: podOthers,
		template: object{"!spec": object{"replicas": one{1, 2}, "!selector": selector, "!serviceName": "s", "podManagementPolicy": "Parallel", "!template": podTemplate(nil),
			"updateStrategy": one{object{"type": "OnDelete"}, object{"type": "RollingUpdate", "rollingUpdate": object{"partition": 1}}}}}},
	{apiVersion: "apps/v1", name: "DaemonSet", path: "/apis/apps/v1", plural: "daemonsets", others: podOthers,
		template: object{"!spec": object{"!selector": selector, "!template": podTemplate(nil), "updateStrategy": object{"type": one{"OnDelete", "RollingUpdate"}}}}},
	{apiVersion: "batch/v1", name: "Job", path: "/apis/batch/v1", plural: "jobs",
		template: object{"!spec": object{"parallelism": one{1, 2}, "completions": 3, "backoffLimit": one{1, 2}, "suspend": true,
			"!template": object{"!spec": object{"!restartPolicy": "Never", "!containers": []any{object{"name": "main", "image": "example.com/main:1"}}}}}}},
	{apiVersion: "batch/v1", name: "CronJob", path: "/apis/batch/v1", plural: "cronjobs",
		template: object{"!spec": object{"!schedule": one{"0 0 1 1 *", "0 0 2 1 *"}, "suspend": one{true, false}, "concurrencyPolicy": one{"Forbid", "Allow"}, "timeZone": one{"Etc/UTC"},
			"!jobTemplate": object{"!spec": object{"backoffLimit": one{1, 2}, "!template": podTemplate(object{"!restartPolicy": "Never"})}}}}},
	{apiVersion: "networking.k8s.io/v1", name: "Ingress", path: "/apis/networking.k8s.io/v1", plural: "ingresses",
		template: object{"!spec": object{"ingressClassName": one{"a", "b"}, "tls": list{object{"hosts": one{[]any{"a"}, []any{"b", "c"}}, "!secretName": "t"}},
			"!defaultBackend": object{"!service": object{"!name": one{"a", "b"}, "!port": one{object{"number": 80}, object{"name": "http"}}}},
			"rules":           list{object{"!host": "a.example.com", "http": object{"!paths": list{must{object{"!path": "/", "!pathType": "Prefix", "!backend": object{"!service": object{"!name": "a", "!port": object{"number": one{80, 81}}}}}}}}}, object{"!host": "b.example.com"}}}}},
	{apiVersion: "networking.k8s.io/v1", name: "NetworkPolicy", path: "/apis/networking.k8s.io/v1", plural: "networkpolicies",
		template: object{"!spec": object{"!podSelector": object{"matchLabels": object{"a": one{"1", "2"}, "b": "b"}}, "policyTypes": one{[]any{"Ingress"}, []any{"Ingress", "Egress"}},
			"ingress": list{object{"ports": list{object{"!port": one{80, "http"}}}}, object{"from": list{object{"!podSelector": object{}}}}}}}},
	{apiVersion: "policy/v1", name: "PodDisruptionBudget", path: "/apis/policy/v1", plural: "poddisruptionbudgets",
		template: object{"!spec": object{"!selector": object{"matchLabels": object{"a": one{"1", "2"}, "b": "b"}}, "maxUnavailable": one{1, "50%"}}}},
	{apiVersion: "autoscaling/v2", name: "HorizontalPodAutoscaler", path: "/apis/autoscaling/v2", plural: "horizontalpodautoscalers",
		template: object{"!spec": object{"!maxReplicas": one{5, 6}, "minReplicas": one{1, 2}, "!scaleTargetRef": object{"!kind": "Deployment", "!name": "d", "apiVersion": "apps/v1"},
			"metrics":  list{object{"!type": "Resource", "!resource": object{"!name": "cpu", "!target": object{"!type": "Utilization", "!averageUtilization": one{50, 60}}}}},
			"behavior": object{"scaleDown": object{"stabilizationWindowSeconds": one{10, 20}, "policies": list{object{"!type": "Pods", "!value": 1, "!periodSeconds": one{15, 30}}}}}}}},
	{apiVersion: "rbac.authorization.k8s.io/v1", name: "Role", path: "/apis/rbac.authorization.k8s.io/v1", plural: "roles",
		template: object{"rules": list{object{"!apiGroups": []any{""}, "!resources": one{[]any{"pods"}, []any{"pods", "secrets"}}, "!verbs": one{[]any{"get"}, []any{"*"}}}, object{"!apiGroups": []any{"apps"}, "!resources": []any{"deployments"}, "!verbs": []any{"get"}, "resourceNames": []any{"x"}}}}},
	{apiVersion: "rbac.authorization.k8s.io/v1", name: "RoleBinding", path: "/apis/rbac.authorization.k8s.io/v1", plural: "rolebindings",
		template: object{"!roleRef": object{"!apiGroup": "rbac.authorization.k8s.io", "!kind": "Role", "!name": one{"r", "r", "r", "q"}},
			"subjects": list{object{"!kind": "ServiceAccount", "!name": "a", "!namespace": one{"x", "y"}}, object{"!kind": "User", "!name": one{"u", "v"}, "apiGroup": "rbac.authorization.k8s.io"}}}},
	{apiVersion: "rbac.authorization.k8s.io/v1", name: "ClusterRole", path: "/apis/rbac.authorization.k8s.io/v1", plural: "clusterroles", cluster: true,
		template: object{"rules": list{object{"!apiGroups": []any{""}, "!resources": []any{"nodes"}, "!verbs": one{[]any{"get"}, []any{"list", "get"}}}},
			"aggregationRule": object{"!clusterRoleSelectors": list{object{"!matchLabels": object{"a": "1", "b": "2"}}}}}},
	{apiVersion: "scheduling.k8s.io/v1", name: "PriorityClass", path: "/apis/scheduling.k8s.io/v1", plural: "priorityclasses", cluster: true,
		template: object{"!value": one{5, 5, 5, 6}, "description": one{"a", "b"}, "globalDefault": false}},
	{apiVersion: "differential.example.com/v1", name: "Widget", path: "/apis/differential.example.com/v1", plural: "widgets", custom: true,
		template: widgetTemplate, others: object{"spec": object{"granular": object{"injected": "1", "a": "3"}}}},
	{apiVersion: "differential.example.com/v1", name: "Loose", path: "/apis/differential.example.com/v1", plural: "looses", custom: true,
		template: object{"spec": object{"n": one{1, 2, 1.5}, "deep": object{"a": one{"1", "2"}, "b": object{"c": one{true, false}, "d": nil}}, "list": list{1, "x", object{"a": one{1, 2}, "b": nil}}, "text": one{"a", "ü", ""}}},
		others:   object{"spec": object{"deep": object{"injected": "1"}}}},
}

var widgetTemplate = object{"spec": object{
	"size": one{1, 2}, "nullable": one{"a", nil}, "defaulted": one{"x", "y"},
	"granular": object{"a": one{"1", "2"}, "b": "b"}, "atomic": object{"a": one{"1", "2"}, "b": "b"},
	"set":   list{"x", "y", "z"},
	"items": list{object{"!name": "a", "value": one{1, 2}}, object{"!name": "b", "value": 1}, object{"!name": "c"}},
	"plain": list{object{"name": "a", "value": one{1, 2}}, object{"name": "b"}}}}

// definition is the CustomResourceDefinition of a kind.
func definition(k *kind, spec object) object {
	return object{"metadata": object{"name": k.plural + ".differential.example.com"},
		"spec": object{"group": "differential.example.com", "scope": "Namespaced", "names": object{"kind": k.name, "plural": k.plural},
			"versions": []any{object{"name": "v1", "served": true, "storage": true, "schema": object{
				"openAPIV3Schema": object{"type": "object", "properties": object{"spec": spec}}}}}}}
}

var (
	text        = object{"type": "string"}
	item        = object{"type": "object", "required": []any{"name"}, "properties": object{"name": text, "value": object{"type": "integer"}}}
	looseSpec   = object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	widgetProps = object{"size": object{"type": "integer"}, "nullable": object{"type": "string", "nullable": true}, "defaulted": object{"type": "string", "default": "d"},
		"granular": object{"type": "object", "additionalProperties": text},
		"atomic":   object{"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
		"set":      object{"type": "array", "items": text, "x-kubernetes-list-type": "set"},
		"items":    object{"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"}},
		"plain":    object{"type": "array", "items": item}}
	widgetSpec = object{"type": "object", "properties": widgetProps}
)
