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
	// Verified is when the feed was last found to equal its cluster, since it began to be watched.
	Verified *time.Time `json:"verified,omitempty"`
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
				views = append(views, watchView{name, f.Feed.Kind.String(), f.Feed.Namespace, f.State, f.Message, f.Since, timeOrNil(f.Verified)})
			}
		}
	}
	slices.SortStableFunc(views, func(x, y watchView) int { return cmp.Compare(x.Account, y.Account) })
	admin.WriteList(w, q, views)
}

// feedStatuses returns the states of the account's feeds, sorted by kind; none while another agent reports
// the account.
func (a *account) feedStatuses() []watch.FeedStatus {
	w := a.currentWatcher()
	if w == nil {
		return nil
	}
	return w.Feeds()
}

// timeOrNil returns nil for the zero time, which JSON would show as a date.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
