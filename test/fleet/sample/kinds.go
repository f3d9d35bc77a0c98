package sample

import "github.com/vedette-io/vedette"

func core(kind, plural string, short ...string) vedette.Resource {
	return resource("", "v1", kind, plural, short)
}

func resource(group, version, kind, plural string, short []string) vedette.Resource {
	return vedette.Resource{Kind: vedette.Kind{Group: group, Name: kind}, Version: version, Plural: plural,
		Singular: lower(kind), ShortNames: short, Namespaced: kind != "Namespace"}
}

var resources = []vedette.Resource{
	core("Namespace", "namespaces", "ns"),
	core("Pod", "pods", "po"),
	resource("apps", "v1", "ReplicaSet", "replicasets", []string{"rs"}),
	resource("apps", "v1", "Deployment", "deployments", []string{"deploy"}),
	core("Service", "services", "svc"),
	core("ConfigMap", "configmaps", "cm"),
	resource("networking.k8s.io", "v1", "Ingress", "ingresses", []string{"ing"}),
	resource("batch", "v1", "Job", "jobs", nil),
	resource("apps", "v1", "StatefulSet", "statefulsets", []string{"sts"}),
	resource("apps", "v1", "DaemonSet", "daemonsets", []string{"ds"}),
	resource("batch", "v1", "CronJob", "cronjobs", []string{"cj"}),
	resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", []string{"netpol"}),
	core("Secret", "secrets"),
}

// perApp is the number of objects per application by kind; the default is one.
var perApp = map[string]int{"Pod": 4, "ReplicaSet": 2}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
