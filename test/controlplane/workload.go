//go:build unix

package controlplane

import (
	"context"
	"fmt"
	"maps"
)

// Workloads describes sample objects of the usual kinds. Zero values mean the defaults.
type Workloads struct {
	Namespace   string // is created; default "demo"
	Deployments int    // each with a Service; default 5
	Replicas    int    // of each Deployment; default 2
}

func (w Workloads) withDefaults() Workloads {
	if w.Namespace == "" {
		w.Namespace = "demo"
	}
	if w.Deployments == 0 {
		w.Deployments = 5
	}
	if w.Replicas == 0 {
		w.Replicas = 2
	}
	return w
}

// CreateWorkloads applies a namespace with Deployments, their Services, a StatefulSet, a DaemonSet,
// a Job, a CronJob, a HorizontalPodAutoscaler, an Ingress, a ConfigMap and a Secret. Existing ones
// are updated. It returns when they are written; controllers create their Pods later.
func (p *Plane) CreateWorkloads(ctx context.Context, w Workloads) error {
	w = w.withDefaults()
	for _, item := range w.objects() {
		if err := p.Apply(ctx, item.path, item.object); err != nil {
			return fmt.Errorf("create workloads: %w", err)
		}
	}
	return nil
}

// item is an object and its path in the API.
type item struct {
	path   string
	object Object
}

func (w Workloads) objects() []item {
	core, apps := "/api/v1/namespaces/"+w.Namespace, "/apis/apps/v1/namespaces/"+w.Namespace
	items := []item{
		{core, newObject("v1", "Namespace", w.Namespace, nil)},
		{core + "/configmaps/settings", newObject("v1", "ConfigMap", "settings", Object{"data": Object{"colour": "blue"}})},
		{core + "/secrets/password", newObject("v1", "Secret", "password", Object{"stringData": Object{"password": "correct horse"}})},
	}
	for i := range w.Deployments {
		name := deploymentName(i)
		items = append(items,
			item{apps + "/deployments/" + name, deployment(name, w.Replicas)},
			item{core + "/services/" + name, service(name)})
	}
	return append(items,
		item{core + "/services/store", service("store")},
		item{apps + "/statefulsets/store", statefulSet("store")},
		item{apps + "/daemonsets/watcher", daemonSet("watcher")},
		item{"/apis/batch/v1/namespaces/" + w.Namespace + "/jobs/migrate",
			newObject("batch/v1", "Job", "migrate", Object{"spec": jobSpec("migrate")})},
		item{"/apis/batch/v1/namespaces/" + w.Namespace + "/cronjobs/report", cronJob("report")},
		item{"/apis/autoscaling/v2/namespaces/" + w.Namespace + "/horizontalpodautoscalers/app-0", autoscaler(deploymentName(0))},
		item{"/apis/networking.k8s.io/v1/namespaces/" + w.Namespace + "/ingresses/front", ingress("front", deploymentName(0))},
	)
}

func deploymentName(i int) string { return fmt.Sprintf("app-%d", i) }

// newObject returns an object with the given fields.
func newObject(version, kind, name string, rest Object) Object {
	o := Object{"apiVersion": version, "kind": kind, "metadata": Object{"name": name, "labels": labels(name)}}
	maps.Copy(o, rest)
	return o
}

func labels(name string) Object {
	return Object{"app": name, "app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "demo"}
}

func selector(name string) Object { return Object{"matchLabels": Object{"app": name}} }

func deployment(name string, replicas int) Object {
	return newObject("apps/v1", "Deployment", name, Object{"spec": Object{
		"replicas": replicas, "selector": selector(name), "template": podTemplate(name),
	}})
}

func statefulSet(name string) Object {
	return newObject("apps/v1", "StatefulSet", name, Object{"spec": Object{
		"replicas": 2, "serviceName": name, "selector": selector(name), "template": podTemplate(name),
	}})
}

func daemonSet(name string) Object {
	return newObject("apps/v1", "DaemonSet", name, Object{"spec": Object{
		"selector": selector(name), "template": podTemplate(name),
	}})
}

func podTemplate(name string) Object {
	return Object{"metadata": Object{"labels": labels(name)}, "spec": podSpec(name)}
}

func podSpec(name string) Object {
	return Object{"containers": []Object{{
		"name": "main", "image": "registry.example.com/" + name + ":1.0.0",
		"ports":     []Object{{"name": "http", "containerPort": 8080}},
		"env":       []Object{{"name": "NAME", "value": name}},
		"resources": Object{"requests": Object{"cpu": "10m", "memory": "16Mi"}},
	}}}
}

func service(name string) Object {
	return newObject("v1", "Service", name, Object{"spec": Object{
		"selector": Object{"app": name},
		"ports":    []Object{{"name": "http", "port": 80, "targetPort": "http"}},
	}})
}

func jobSpec(name string) Object {
	pod := podSpec(name)
	pod["restartPolicy"] = "Never"
	return Object{"template": Object{"metadata": Object{"labels": labels(name)}, "spec": pod}}
}

func cronJob(name string) Object {
	return newObject("batch/v1", "CronJob", name, Object{"spec": Object{
		"schedule": "* * * * *", "jobTemplate": Object{"spec": jobSpec(name)},
	}})
}

func autoscaler(target string) Object {
	return newObject("autoscaling/v2", "HorizontalPodAutoscaler", target, Object{"spec": Object{
		"scaleTargetRef": Object{"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
		"minReplicas":    1, "maxReplicas": 10,
		"metrics": []Object{{"type": "Resource", "resource": Object{
			"name": "cpu", "target": Object{"type": "Utilization", "averageUtilization": 80}}}},
	}})
}

func ingress(name, backend string) Object {
	path := Object{"path": "/", "pathType": "Prefix", "backend": Object{
		"service": Object{"name": backend, "port": Object{"name": "http"}}}}
	return newObject("networking.k8s.io/v1", "Ingress", name, Object{"spec": Object{
		"rules": []Object{{"host": "demo.example.com", "http": Object{"paths": []Object{path}}}},
	}})
}
