package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/test/controlplane"
)

// step shows something, or does something.
type step struct {
	name string
	do   func(p *page)
}

// app is an application as Deck's paths name it.
type app struct {
	name  string
	plane *controlplane.Plane
	names generatedNames
}

// generatedNames are names that the cluster made.
type generatedNames struct {
	web, stuck       string // newest ReplicaSets
	webPod, stuckPod string // UIDs
}

// newApp finds the names of an application.
func newApp(ctx context.Context, plane *controlplane.Plane, name string) (*app, error) {
	a := &app{name: name, plane: plane}
	for label, names := range map[string][2]*string{"web": {&a.names.web, &a.names.webPod}, "stuck": {&a.names.stuck, &a.names.stuckPod}} {
		pods, err := a.list(ctx, "/api/v1", "pods", label)
		if err != nil {
			return nil, err
		}
		if len(pods) == 0 {
			return nil, fmt.Errorf("application %s has no pods of %s", name, label)
		}
		pod := slices.MinFunc(pods, func(x, y listed) int { return strings.Compare(x.Metadata.Name, y.Metadata.Name) })
		*names[0], *names[1] = pod.Metadata.OwnerReferences[0].Name, pod.Metadata.UID
	}
	return a, nil
}

type listed struct {
	Metadata struct {
		Name, UID       string
		OwnerReferences []struct{ Name string }
	}
}

func (a *app) list(ctx context.Context, group, resource, label string) ([]listed, error) {
	var list struct{ Items []listed }
	err := a.plane.Get(ctx, fmt.Sprintf("%s/namespaces/%s/%s?labelSelector=app%%3D%s", group, a.name, resource, label), &list)
	return list.Items, err
}

// path returns a path of Deck within the application.
func (a *app) path(parts ...string) string {
	path := "/applications/" + a.name
	for _, part := range parts {
		path += "/" + part
	}
	return path
}

// details returns the path of a page with the details of an object below clusters, loadBalancers or firewalls.
func (a *app) details(kind, name string) string {
	parts := map[string][]string{
		"serverGroup":        {"clusters", "serverGroupDetails", "kubernetes", account, a.name},
		"serverGroupManager": {"clusters", "serverGroupManagerDetails", "kubernetes", account, a.name},
		"instance":           {"clusters", "instanceDetails", "kubernetes"},
		"loadBalancer":       {"loadBalancers", "loadBalancerDetails", "kubernetes", account, a.name, ""},
		"firewall":           {"firewalls", "firewallDetails", "kubernetes", account, a.name, ""},
		"rawResource":        {"kubernetes", "rawResourceDetails", account, a.name},
	}[kind]
	return a.path(append(slices.Clone(parts), url.PathEscape(name))...)
}

// menu opens the menu of actions on an object, and chooses one if it is not "".
func (a *app) menu(p *page, kind, name, action string) {
	p.open(a.details(kind, name))
	p.click(".details-panel .dropdown-toggle", "")
	if action != "" {
		p.click(".dropdown-menu a", action) // the menu is not in the panel
		p.await(".modal-dialog", "")
	}
	p.settle()
}

// walk returns the pages of an application that nobody changes.
func (a *app) walk() []step {
	show := func(path string) func(*page) { return func(p *page) { p.open(path) } }
	of := func(kind, name string) func(*page) { return show(a.details(kind, name)) }
	menu := func(kind, name, action string) func(*page) {
		return func(p *page) { a.menu(p, kind, name, action) }
	}
	then := func(do ...func(*page)) func(*page) {
		return func(p *page) {
			for _, f := range do {
				f(p)
			}
			p.settle()
		}
	}
	click := func(selector, text string) func(*page) { return func(p *page) { p.click(selector, text) } }
	clusters := show(a.path("clusters"))
	return []step{
		{"applications", show("/applications")},
		{"search", show("/search?q=collector")},
		{"search-pods", show("/search?q=api-v001")},
		{"clusters", clusters},
		{"clusters-with-instances", then(clusters, click("label", "Instances"))},
		{"clusters-with-details", then(clusters, click("label", "Instances"), click("label", "with details"))},
		{"filter-account", show(a.path("clusters?acct=" + account))},
		{"filter-kind", show(a.path("clusters?category=serverGroupManager"))},
		{"filter-region", show(a.path("clusters?reg=" + a.name))},
		{"filter-status", show(a.path("clusters?status=Down"))},
		{"filter-label", show(a.path("clusters?labels=app:web"))},
		{"replicaset", of("serverGroup", "replicaSet "+a.names.web)},
		{"replicaset-versioned", menu("serverGroup", "replicaSet api-v001", "")},
		{"replicaset-stuck", of("serverGroup", "replicaSet "+a.names.stuck)},
		{"replicaset-edit", menu("serverGroup", "replicaSet api-v001", "Edit")},
		{"statefulset", menu("serverGroup", "statefulSet db", "")},
		{"daemonset", menu("serverGroup", "daemonSet collector", "")},
		{"job", of("serverGroup", "job import")},
		{"deployment", menu("serverGroupManager", "deployment web", "")},
		{"deployment-scale", menu("serverGroupManager", "deployment web", "Scale")},
		{"deployment-restart", menu("serverGroupManager", "deployment web", "Rolling Restart")},
		{"deployment-undo", menu("serverGroupManager", "deployment web", "Undo Rollout")},
		{"deployment-edit", menu("serverGroupManager", "deployment web", "Edit")},
		{"deployment-delete", menu("serverGroupManager", "deployment web", "Delete")},
		{"deployment-stuck", of("serverGroupManager", "deployment stuck")},
		{"instance", of("instance", a.names.webPod)},
		{"instance-log", then(of("instance", a.names.webPod), click(".details-panel button", "Console Output"))},
		{"instance-stuck", of("instance", a.names.stuckPod)},
		{"load-balancers", show(a.path("loadBalancers"))},
		{"load-balancers-with-instances", then(show(a.path("loadBalancers")), click("label", "Instances"))},
		{"service", of("loadBalancer", "service web")},
		{"service-headless", of("loadBalancer", "service db")},
		{"service-edit", menu("loadBalancer", "service web", "Edit")},
		{"ingress", of("loadBalancer", "ingress web")},
		{"firewalls", show(a.path("firewalls"))},
		{"network-policy", of("firewall", "networkPolicy web")},
		{"kubernetes", show(a.path("kubernetes"))},
		{"kubernetes-autoscaler", of("rawResource", "horizontalPodAutoscaler web")},
		{"kubernetes-cronjob", of("rawResource", "cronJob report")},
		{"kubernetes-custom", of("rawResource", "Cache.deck.example.com fast")},
		{"kubernetes-configmap", of("rawResource", "configMap settings-v000")},
		{"create-server-group", then(clusters, click("button", "Create Server Group"))},
		{"no-tasks", show(a.path("tasks"))},
		{"no-pipelines", show(a.path("executions"))},
		{"config", show(a.path("config"))},
	}
}
