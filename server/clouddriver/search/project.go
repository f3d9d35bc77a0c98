package search

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/front50"
)

type projectResult struct {
	ID     string              `json:"id"`
	Name   string              `json:"name"`
	Config projectResultConfig `json:"config"`
	Type   string              `json:"type"`
	URL    string              `json:"url"`
}

type projectResultConfig struct {
	Applications []string `json:"applications"`
}

// projectSearchTimeout is how long the results of clusters wait for those of Front50.
const projectSearchTimeout = 3 * time.Second

// searchProjects returns what Front50 finds, like Clouddriver's ProjectSearchProvider. If Front50
// does not answer, the search has no projects. Other pages than the first have none, because
// Front50 has no pages.
func (a *api) searchProjects(r *http.Request, s searchRequest) []any {
	isAsked := s.types[projectType] && (s.platform == "" || s.platform == front50Platform)
	if !isAsked || a.Projects == nil || s.page != 1 || s.pageSize < 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), projectSearchTimeout)
	defer cancel()
	parameters := url.Values{"name": {s.query}, "applications": {s.query}}
	projects, err := a.Projects.SearchProjects(ctx, parameters, min(s.pageSize, defaultPageSize), authorize.CallerOf(r).Header)
	if err != nil {
		a.Log.WarnContext(ctx, "search without projects: Front50 does not answer", slog.Any("error", err))
	}
	var results []any
	for _, p := range projects {
		results = append(results, newProjectResult(p))
	}
	return results
}

func newProjectResult(p front50.Project) projectResult {
	return projectResult{ID: p.ID, Name: p.Name, Config: projectResultConfig{append([]string{}, p.Config.Applications...)}, Type: projectType,
		URL: "/projects/" + url.PathEscape(p.ID)}
}
