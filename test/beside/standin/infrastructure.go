package standin

import (
	"maps"
	"net/http"
	"strings"
)

// loadBalancers answers with the Services of an application.
func (s *Server) loadBalancers(r *http.Request, now snapshot) Answer {
	views := []any{}
	for _, o := range now.selectKinds(r.PathValue("app"), "service") {
		view := o.base()
		view["cloudProvider"], view["type"] = "kubernetes", "kubernetes"
		view["serverGroups"] = now.related(o.selects)
		views = append(views, view)
	}
	return answerJSON(views)
}

// rawResources answers with all objects of an application.
func (s *Server) rawResources(r *http.Request, now snapshot) Answer {
	views := []any{}
	for _, o := range now.selectKinds(r.PathValue("app"), "deployment", "pod", "replicaSet", "service", "networkPolicy") {
		views = append(views, o.base())
	}
	return answerJSON(views)
}

// securityGroups answers with the NetworkPolicies by account, provider and namespace.
func (s *Server) securityGroups(_ *http.Request, now snapshot) Answer {
	byAccount := map[string]map[string]map[string][]any{}
	for _, o := range now.objects {
		if o.kind() != "networkPolicy" {
			continue
		}
		if byAccount[o.Account] == nil {
			byAccount[o.Account] = map[string]map[string][]any{"kubernetes": {}}
		}
		inAccount := byAccount[o.Account]["kubernetes"]
		inAccount[o.Metadata.Namespace] = append(inAccount[o.Metadata.Namespace],
			map[string]any{"id": o.FullName(), "moniker": map[string]any{}, "name": o.FullName()})
	}
	return answerJSON(byAccount)
}

// manifest answers with one object.
func (s *Server) manifest(r *http.Request, now snapshot) Answer {
	o, ok := now.find(r.PathValue("account"), r.PathValue("location"), r.PathValue("name"))
	if !ok {
		return notFound("Manifest not found")
	}
	copied := map[string]any{}
	maps.Copy(copied, o.manifest)
	metadata := map[string]any{}
	maps.Copy(metadata, o.manifest["metadata"].(map[string]any))
	metadata["labels"], copied["metadata"] = o.labels(), metadata
	return answerJSON(map[string]any{"account": o.Account, "artifacts": []any{}, "events": []any{}, "location": o.Metadata.Namespace, "manifest": copied,
		"metrics": []any{}, "moniker": o.moniker(), "name": o.FullName(), "status": map[string]any{}, "warnings": []any{}})
}

// searchTypes are the types of search results that the stand-in has.
var searchTypes = map[string]string{"instances": "pod", "loadBalancers": "service", "serverGroupManagers": "deployment", "serverGroups": "replicaSet"}

// search answers with one page of all objects whose name contains a text.
func (s *Server) search(r *http.Request, now snapshot) Answer {
	query := r.URL.Query()
	results := []any{}
	for _, wanted := range split(query.Get("type")) {
		for _, o := range now.selectKinds("", searchTypes[wanted]) {
			if strings.Contains(o.FullName(), query.Get("q")) {
				results = append(results, map[string]any{"account": o.Account, "kubernetesKind": o.kind(), "name": o.FullName(),
					"namespace": o.Metadata.Namespace, "provider": "kubernetes", "region": o.Metadata.Namespace, "type": wanted})
			}
		}
	}
	return answerJSON([]any{map[string]any{"pageNumber": 1, "pageSize": 10000, "platform": "aws", "query": query.Get("q"), "results": results,
		"totalMatches": len(results)}})
}
