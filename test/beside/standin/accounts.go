package standin

import (
	"net/http"
	"slices"
)

// credentials answers with all accounts.
func (s *Server) credentials(r *http.Request, now snapshot) Answer {
	views := []any{}
	for _, a := range now.accounts {
		views = append(views, a.view(now, r.URL.Query().Get("expand") == "true"))
	}
	return answerJSON(views)
}

func (s *Server) credential(r *http.Request, now snapshot) Answer {
	name := r.PathValue("account")
	index := slices.IndexFunc(now.accounts, func(a Account) bool { return a.Name == name })
	if index < 0 {
		return notFound("Account named '" + name + "' not found")
	}
	return answerJSON(now.accounts[index].view(now, true))
}

func (a Account) view(now snapshot, isExpanded bool) map[string]any {
	view := map[string]any{"accountType": a.Name, "challengeDestructiveActions": false, "cloudProvider": a.provider(), "environment": Name,
		"name": a.Name, "primaryAccount": false, "requiredGroupMembership": []any{}, "type": a.provider()}
	if !isExpanded || a.provider() != "kubernetes" {
		return view
	}
	namespaces := []string{}
	for _, o := range now.of(a.Name).objects {
		if !slices.Contains(namespaces, o.Metadata.Namespace) {
			namespaces = append(namespaces, o.Metadata.Namespace)
		}
	}
	view["cacheThreads"] = 1
	view["dockerRegistries"] = []any{}
	view["enabled"] = true
	view["namespaces"] = namespaces
	view["spinnakerKindMap"] = map[string]string{"deployment": "serverGroupManagers", "ingress": "loadBalancers", "networkPolicy": "securityGroups",
		"pod": "instances", "replicaSet": "serverGroups", "service": "loadBalancers"}
	return view
}

func (s *Server) artifactCredentials(*http.Request, snapshot) Answer {
	return answerJSON([]any{
		map[string]any{"name": "embedded-artifact", "type": "artifacts-embedded", "types": []string{"embedded/base64", "remote/base64"}},
		map[string]any{"name": "charts", "type": "artifacts-s3", "types": []string{"s3/object"}}})
}

func (s *Server) stages(*http.Request, snapshot) Answer {
	return answerJSON([]any{map[string]any{"enabled": true, "name": "cleanupArtifacts"}, map[string]any{"enabled": true, "name": "upsertScalingPolicy"}})
}
