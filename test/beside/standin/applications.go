package standin

import "net/http"

// applications answers with all applications, with the names of their clusters unless expand is false.
func (s *Server) applications(r *http.Request, now snapshot) Answer {
	views := []any{}
	for _, name := range now.applications() {
		views = append(views, map[string]any{"attributes": map[string]any{"name": name}, "clusterNames": now.clusters(name), "name": name})
	}
	return answerJSON(views)
}

func (s *Server) application(r *http.Request, now snapshot) Answer {
	name := r.PathValue("app")
	byAccount := map[string][]any{}
	for account, clusters := range now.clusters(name) {
		for _, cluster := range clusters {
			byAccount[account] = append(byAccount[account],
				map[string]any{"loadBalancers": []any{}, "name": cluster, "provider": "kubernetes", "serverGroups": []any{}})
		}
	}
	if len(byAccount) == 0 {
		return notFound("Application does not exist (name: " + name + ")")
	}
	return answerJSON(map[string]any{"attributes": map[string]any{"cloudProviders": "kubernetes", "name": name}, "clusters": byAccount, "name": name})
}

func (s *Server) clusters(r *http.Request, now snapshot) Answer {
	return answerJSON(now.clusters(r.PathValue("app")))
}

// accountClusters answers with the clusters of an application in one account.
func (s *Server) accountClusters(r *http.Request, now snapshot) Answer {
	views := []any{}
	for _, cluster := range now.clusters(r.PathValue("app"))[r.PathValue("account")] {
		views = append(views, map[string]any{"accountName": r.PathValue("account"), "loadBalancers": []any{}, "name": cluster, "serverGroups": []any{},
			"type": "kubernetes"})
	}
	return answerJSON(views)
}

// projectClusters answers for a project of all applications in all accounts.
func (s *Server) projectClusters(_ *http.Request, now snapshot) Answer {
	views := []any{}
	for _, a := range now.accounts {
		part := now.of(a.Name)
		applications := []any{}
		for _, name := range part.applications() {
			counts := map[string]any{"down": 0, "outOfService": 0, "starting": 0, "total": 0, "unknown": 0, "up": 0}
			applications = append(applications, map[string]any{"application": name, "clusters": []any{}, "instanceCounts": counts, "lastPush": 0})
		}
		views = append(views, map[string]any{"account": a.Name, "applications": applications, "detail": "*", "stack": "*"})
	}
	return answerJSON(views)
}
