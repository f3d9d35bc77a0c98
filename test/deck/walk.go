package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/vedette-io/vedette/test/controlplane"
)

// step shows a page, or is an action.
type step struct {
	name string
	do   func(p *page)

	// isAction is true if the cluster shows what the step did. What Deck shows right after it depends on when Clouddriver reads
	// the cluster again, so it is not compared.
	isAction bool
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
		{name: "applications", do: show("/applications")},
		{name: "search", do: show("/search?q=collector")},
		{name: "search-pods", do: show("/search?q=api-v001")},
		{name: "clusters", do: clusters},
		{name: "clusters-with-instances", do: then(clusters, click("label", "Instances"))},
		{name: "clusters-with-details", do: then(clusters, click("label", "Instances"), click("label", "with details"))},
		{name: "filter-account", do: show(a.path("clusters?acct=" + account))},
		{name: "filter-kind", do: show(a.path("clusters?category=serverGroupManager"))},
		{name: "filter-region", do: show(a.path("clusters?reg=" + a.name))},
		{name: "filter-status", do: show(a.path("clusters?status=Down"))},
		{name: "filter-label", do: show(a.path("clusters?labels=app:web"))},
		{name: "replicaset", do: of("serverGroup", "replicaSet "+a.names.web)},
		{name: "replicaset-versioned", do: menu("serverGroup", "replicaSet api-v001", "")},
		{name: "replicaset-stuck", do: of("serverGroup", "replicaSet "+a.names.stuck)},
		{name: "replicaset-edit", do: menu("serverGroup", "replicaSet api-v001", "Edit")},
		{name: "statefulset", do: menu("serverGroup", "statefulSet db", "")},
		{name: "daemonset", do: menu("serverGroup", "daemonSet collector", "")},
		{name: "job", do: of("serverGroup", "job import")},
		{name: "deployment", do: menu("serverGroupManager", "deployment web", "")},
		{name: "deployment-scale", do: menu("serverGroupManager", "deployment web", "Scale")},
		{name: "deployment-restart", do: menu("serverGroupManager", "deployment web", "Rolling Restart")},
		{name: "deployment-undo", do: menu("serverGroupManager", "deployment web", "Undo Rollout")},
		{name: "deployment-edit", do: menu("serverGroupManager", "deployment web", "Edit")},
		{name: "deployment-delete", do: menu("serverGroupManager", "deployment web", "Delete")},
		{name: "deployment-stuck", do: of("serverGroupManager", "deployment stuck")},
		{name: "instance", do: of("instance", a.names.webPod)},
		{name: "instance-log", do: then(of("instance", a.names.webPod), click(".details-panel button", "Console Output"))},
		{name: "instance-stuck", do: of("instance", a.names.stuckPod)},
		{name: "load-balancers", do: show(a.path("loadBalancers"))},
		{name: "load-balancers-with-instances", do: then(show(a.path("loadBalancers")), click("label", "Instances"))},
		{name: "service", do: of("loadBalancer", "service web")},
		{name: "service-headless", do: of("loadBalancer", "service db")},
		{name: "service-edit", do: menu("loadBalancer", "service web", "Edit")},
		{name: "ingress", do: of("loadBalancer", "ingress web")},
		{name: "firewalls", do: show(a.path("firewalls"))},
		{name: "network-policy", do: of("firewall", "networkPolicy web")},
		{name: "kubernetes", do: show(a.path("kubernetes"))},
		{name: "kubernetes-autoscaler", do: of("rawResource", "horizontalPodAutoscaler web")},
		{name: "kubernetes-cronjob", do: of("rawResource", "cronJob report")},
		{name: "kubernetes-custom", do: of("rawResource", "Cache.deck.example.com fast")},
		{name: "kubernetes-configmap", do: of("rawResource", "configMap settings-v000")},
		{name: "create-server-group", do: then(clusters, click("button", "Create Server Group"))},
		{name: "no-tasks", do: show(a.path("tasks"))},
		{name: "no-pipelines", do: show(a.path("executions"))},
		{name: "config", do: show(a.path("config"))},
	}
}
