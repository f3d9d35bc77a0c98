package standin

import (
	"net/http"
	"strings"
)

// serverGroups answers with the server groups of an application.
func (s *Server) serverGroups(r *http.Request, now snapshot) Answer {
	views := []any{}
	for _, o := range now.selectKinds(r.PathValue("app"), "replicaSet") {
		views = append(views, now.serverGroup(o, r.URL.Query().Get("expand") == "true"))
	}
	return answerJSON(views)
}

// allServerGroups answers with the server groups of several applications, or with those that are named:
// account:region:name.
func (s *Server) allServerGroups(r *http.Request, now snapshot) Answer {
	views := []any{}
	query := r.URL.Query()
	for _, application := range split(query.Get("applications")) {
		for _, o := range now.selectKinds(application, "replicaSet") {
			views = append(views, now.serverGroup(o, false))
		}
	}
	for _, id := range split(query.Get("ids")) {
		account, rest, _ := strings.Cut(id, ":")
		namespace, name, _ := strings.Cut(rest, ":")
		if o, ok := now.find(account, namespace, name); ok {
			views = append(views, now.serverGroup(o, false))
		}
	}
	return answerJSON(views)
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func (s *Server) namedServerGroup(r *http.Request, now snapshot) Answer {
	o, ok := now.find(r.PathValue("account"), r.PathValue("region"), r.PathValue("name"))
	if !ok {
		return notFound("Server group not found")
	}
	return answerJSON(now.serverGroup(o, true))
}

// serverGroup returns the view of a ReplicaSet.
func (s snapshot) serverGroup(o Object, isExpanded bool) map[string]any {
	view := o.base()
	instances := s.instances(o)
	loadBalancers := []any{}
	managers := []any{}
	images := []string{}
	for _, other := range s.objects {
		switch {
		case other.kind() == "service" && other.selects(o):
			loadBalancers = append(loadBalancers, other.FullName())
		case other.kind() == "deployment" && o.isOwnedBy(other):
			managers = append(managers, map[string]any{"account": o.Account, "location": o.Metadata.Namespace, "name": other.Metadata.Name})
		}
	}
	for _, container := range o.Spec.Template.Spec.Containers {
		images = append(images, container.Image)
	}
	view["buildInfo"], view["capacity"] = map[string]any{"images": images}, map[string]any{"desired": o.Spec.Replicas, "pinned": false}
	view["cloudProvider"] = "kubernetes"
	view["type"] = "kubernetes"
	view["cluster"] = o.Cluster()
	view["instanceCounts"] = map[string]any{"down": 0, "outOfService": 0, "starting": 0, "total": len(instances), "unknown": 0, "up": len(instances)}
	view["instances"] = instances
	view["isDisabled"] = false
	view["loadBalancers"] = loadBalancers
	view["securityGroups"], view["serverGroupManagers"] = []any{}, managers
	if isExpanded {
		view["accountName"] = o.Account
		view["application"] = o.Application()
		view["disabled"] = false
		view["launchConfig"], view["zones"] = map[string]any{}, []any{}
		return view
	}
	for _, name := range []string{"apiVersion", "displayName", "kind", "namespace"} {
		delete(view, name)
	}
	return view
}

// instances returns the views of a ReplicaSet's Pods.
func (s snapshot) instances(serverGroup Object) []any {
	instances := []any{}
	for _, o := range s.objects {
		if o.kind() == "pod" && o.isOwnedBy(serverGroup) {
			health := []any{map[string]any{"state": "Up", "type": "kubernetes/pod"}, map[string]any{"state": "Up", "type": "kubernetes/container"}}
			instances = append(instances, map[string]any{"availabilityZone": o.Metadata.Namespace, "health": health, "healthState": "Up",
				"id": o.Metadata.UID, "name": o.FullName()})
		}
	}
	return instances
}

// managers answers with the Deployments of an application.
func (s *Server) managers(r *http.Request, now snapshot) Answer {
	views := []any{}
	for _, o := range now.selectKinds(r.PathValue("app"), "deployment") {
		view := o.base()
		view["cloudProvider"], view["serverGroups"] = "kubernetes", now.related(func(other Object) bool { return other.isOwnedBy(o) })
		views = append(views, view)
	}
	return answerJSON(views)
}

// related returns short views of the ReplicaSets for which a function returns true.
func (s snapshot) related(isRelated func(Object) bool) []any {
	views := []any{}
	for _, o := range s.objects {
		if o.kind() == "replicaSet" && isRelated(o) {
			views = append(views, map[string]any{"account": o.Account, "moniker": o.moniker(), "name": o.FullName(), "namespace": o.Metadata.Namespace,
				"region": o.Metadata.Namespace})
		}
	}
	return views
}
