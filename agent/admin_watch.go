package agent

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/internal/admin"
)

// watchView is a feed in the response of /watches.
type watchView struct {
	Account   vedette.AccountName `json:"account"`
	Kind      string              `json:"kind"`
	Namespace string              `json:"namespace,omitempty"` // empty for all namespaces
	State     vedette.FeedState   `json:"state"`
	Message   string              `json:"message,omitempty"` // why it is not live
	Since     time.Time           `json:"since"`             // when state or message changed
}

func (a *Agent) listWatches(w http.ResponseWriter, r *http.Request) {
	q, err := admin.ParseQuery(r.URL.Query(), "account", "state")
	if err != nil {
		admin.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	var views []watchView
	for _, account := range a.accounts.all() {
		name := account.cfg.Name
		if !q.Matches("account", string(name)) {
			continue
		}
		for _, f := range account.feedStatuses() {
			if q.Matches("state", string(f.State)) {
				views = append(views, watchView{name, f.Feed.Kind.String(), f.Feed.Namespace, f.State, f.Message, f.Since})
			}
		}
	}
	slices.SortStableFunc(views, func(x, y watchView) int { return cmp.Compare(x.Account, y.Account) })
	admin.WriteList(w, q, views)
}

// feedStatuses returns the states of the account's feeds, sorted by kind; none while another agent reports
// the account.
func (a *account) feedStatuses() []watch.FeedStatus {
	a.mu.Lock()
	w := a.watcher
	a.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.Feeds()
}
