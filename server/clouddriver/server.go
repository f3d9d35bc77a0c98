package clouddriver

import (
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/discover"
	"github.com/vedette-io/vedette/server/rest"
)

// serverView is a server in the format of the Scale Agent's ClouddriverInstance. Whoever may send requests sees all of them, as with the
// servers of GET /vedette/v1/agents.
type serverView struct {
	ID          vedette.ServerID `json:"id"`
	BaseURL     string           `json:"baseUrl"`
	LastUpdated int64            `json:"lastUpdated"` // in milliseconds since 1970
	Ready       bool             `json:"ready"`
}

func newServerView(s discover.Server) serverView {
	return serverView{s.ID, s.BaseURL, s.LastUpdated.UnixMilli(), s.Ready}
}

// knownServers returns the servers, or an error while they are not known: an empty list would say that there are none.
func (a *api) knownServers() ([]discover.Server, error) {
	servers := a.Servers()
	if servers == nil {
		return nil, vedette.Errorf(vedette.Unavailable, "the servers are not known yet, because the server has just started or the cluster with the "+
			"Services does not answer: try again later, and see the server's log")
	}
	return servers, nil
}

// listServers mirrors the Scale Agent's GET /armory/clouddrivers.
func (a *api) listServers(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	servers, err := a.knownServers()
	if err != nil {
		return err
	}
	views := make([]serverView, 0, len(servers))
	for _, s := range servers {
		views = append(views, newServerView(s))
	}
	return rest.WriteJSON(w, r, views)
}

// getServer mirrors the Scale Agent's GET /armory/clouddrivers/{id}.
func (a *api) getServer(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if p["id"] == "" { // as Spring takes a slash at the end
		return a.listServers(w, r, p)
	}
	servers, err := a.knownServers()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if s.ID == vedette.ServerID(p["id"]) {
			return rest.WriteJSON(w, r, newServerView(s))
		}
	}
	return vedette.Errorf(vedette.NotFound, "there is no server %.253q: GET /armory/clouddrivers lists them", p["id"])
}
