package rbac

import (
	"fmt"
	"strings"

	"github.com/vedette-io/vedette"
)

// testKind is a kind, and an object of it that the API server accepts.
type testKind struct {
	kind       string // as vedette.ParseKind reads it
	path       string // of the API
	plural     string
	clustered  bool // cluster-scoped
	body       func(name string) object
	unwatched  bool // operations change it, but the account does not cache it
	withoutGet bool // its data is not read, so a replace needs a manifest
}

func (k testKind) parsed() vedette.Kind { return vedette.ParseKind(k.kind) }

// list returns the path of the objects of a namespace.
func (k testKind) list(namespace string) string {
	if k.clustered {
		return k.path + "/" + k.plural
	}
	return k.path + "/namespaces/" + namespace + "/" + k.plural
}

// manifest returns an object of the kind.
func (k testKind) manifest(namespace, name string) object {
	o := k.body(name)
	group, version := k.parsed().Group, k.path[strings.LastIndex(k.path, "/")+1:]
	o["apiVersion"], o["kind"] = strings.TrimPrefix(group+"/"+version, "/"), k.parsed().Name
	o["metadata"] = object{"name": name, "labels": object{"name": name}}
	if !k.clustered {
		o["metadata"].(object)["namespace"] = namespace
	}
	return o
}

// namespaceOf is the namespace of an operation on the kind.
func (k testKind) namespaceOf(namespace string) string {
	if k.clustered {
		return ""
	}
	return namespace
}

// template returns the pods of a workload. It asks for no node, so that objects stay as they were made.
func template(name string) object {
	return object{"metadata": object{"labels": object{"app": name}}, "spec": object{"containers": []any{object{"name": "main", "image": "registry.example.com/web:1"}}}}
}

func workload(replicas int, more object) func(string) object {
	return func(name string) object {
		spec := object{"selector": object{"matchLabels": object{"app": name}}, "template": template(name)}
		if replicas >= 0 {
			spec["replicas"] = replicas
		}
		for key, value := range more {
			spec[key] = value
		}
		return object{"spec": spec}
	}
}

func jobSpec(name string) object {
	pods := template(name)
	pods["spec"].(object)["restartPolicy"] = "Never"
	return object{"suspend": true, "template": pods}
}

const core, apps, batch, networking = "/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/networking.k8s.io/v1"

// testKinds are the kinds that accounts watch by default, and those that the chart lets operations change besides.
var testKinds = []testKind{
	{kind: "Deployment.apps", path: apps, plural: "deployments", body: workload(0, nil)},
	{kind: "ReplicaSet.apps", path: apps, plural: "replicasets", body: workload(0, nil)},
	{kind: "StatefulSet.apps", path: apps, plural: "statefulsets", body: workload(0, object{"serviceName": "none"})},
	{kind: "DaemonSet.apps", path: apps, plural: "daemonsets", body: workload(-1, nil)},
	{kind: "Pod", path: core, plural: "pods", body: func(name string) object {
		o := template(name)
		delete(o, "metadata")
		return o
	}},
	{kind: "Job.batch", path: batch, plural: "jobs", body: func(name string) object { return object{"spec": jobSpec(name)} }},
	{kind: "CronJob.batch", path: batch, plural: "cronjobs", body: func(name string) object {
		return object{"spec": object{"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": object{"spec": jobSpec(name)}}}
	}},
	{kind: "Service", path: core, plural: "services", body: func(string) object {
		return object{"spec": object{"ports": []any{object{"name": "http", "port": 80}}}}
	}},
	{kind: "Ingress.networking.k8s.io", path: networking, plural: "ingresses", body: func(string) object {
		return object{"spec": object{"defaultBackend": object{"service": object{"name": "web", "port": object{"number": 80}}}}}
	}},
	{kind: "NetworkPolicy.networking.k8s.io", path: networking, plural: "networkpolicies", body: func(string) object {
		return object{"spec": object{"podSelector": object{}}}
	}},
	{kind: "Namespace", path: core, plural: "namespaces", clustered: true, body: func(string) object { return object{} }},
	{kind: "CustomResourceDefinition.apiextensions.k8s.io", path: "/apis/apiextensions.k8s.io/v1", plural: "customresourcedefinitions", clustered: true, body: customKind},
	{kind: "ConfigMap", path: core, plural: "configmaps", unwatched: true, body: func(string) object { return object{"data": object{"a": "b"}} }},
	{kind: "Secret", path: core, plural: "secrets", unwatched: true, withoutGet: true, body: func(string) object {
		return object{"type": "Opaque", "stringData": object{"a": "b"}}
	}},
	{kind: "PersistentVolumeClaim", path: core, plural: "persistentvolumeclaims", unwatched: true, body: func(string) object {
		return object{"spec": object{"accessModes": []string{"ReadWriteOnce"}, "resources": object{"requests": object{"storage": "1Gi"}}, "storageClassName": "none"}}
	}},
	{kind: "ServiceAccount", path: core, plural: "serviceaccounts", unwatched: true, body: func(string) object { return object{} }},
	{kind: "HorizontalPodAutoscaler.autoscaling", path: "/apis/autoscaling/v2", plural: "horizontalpodautoscalers", unwatched: true, body: func(string) object {
		return object{"spec": object{"maxReplicas": 2, "scaleTargetRef": object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}}}
	}},
	{kind: "PodDisruptionBudget.policy", path: "/apis/policy/v1", plural: "poddisruptionbudgets", unwatched: true, body: func(name string) object {
		return object{"spec": object{"maxUnavailable": 1, "selector": object{"matchLabels": object{"app": name}}}}
	}},
}

// customKind is a CustomResourceDefinition, whose name is PLURAL.GROUP.
func customKind(name string) object {
	plural, group, _ := strings.Cut(name, ".")
	return object{"spec": object{"group": group, "scope": "Namespaced", "names": object{"plural": plural, "singular": plural, "kind": "K" + plural, "listKind": "K" + plural + "List"},
		"versions": []any{object{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{"type": "object"}}}}}}
}

// objectName returns the name of an object for an exercise, which is unique in the cluster if the kind is cluster-scoped.
func (k testKind) objectName(namespace, exercise string) string {
	switch {
	case k.plural == "customresourcedefinitions":
		return fmt.Sprintf("%s.%s.example.com", exercise, namespace)
	case k.clustered:
		return namespace + "-" + exercise
	}
	return exercise
}
