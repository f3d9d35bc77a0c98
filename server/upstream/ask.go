package upstream

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vedette-io/vedette/internal/exactjson"
)

// mayAsk reports whether the upstream Clouddriver may have a part of the answer. If it certainly has none, the request does not
// depend on it.
func (m *merge) mayAsk() bool {
	index := m.answers.index
	if m.found.subject != anything && index.hasOthers(m.ours) == no {
		return false
	}
	switch m.found.subject {
	case oneApplication:
		return m.mayHave(m.found.params[appParam])
	case oneObjectList:
		return m.mayHaveObjects(m.found.params[appParam])
	case serverGroups:
		return m.mayHaveServerGroups()
	case anything, objects:
	}
	return true
}

// mayHave reports whether the upstream Clouddriver may have an application. One that nobody knows may be new there.
func (m *merge) mayHave(application string) bool {
	if m.answers.index.hasApplication(application, m.ours) != no {
		return true
	}
	path := &url.URL{Path: "/applications/" + application, RawPath: "/applications/" + url.PathEscape(application)}
	if len(m.ours.arriving) == 0 {
		return m.localStatus(m.r, path) != http.StatusOK
	}
	// What this server has may be of accounts that the answer leaves out.
	local := m.askLocalPath(m.r, path)
	var a struct {
		Clusters map[string]json.RawMessage `json:"clusters"`
	}
	if local.status != http.StatusOK || exactjson.Unmarshal(local.body, &a, exactjson.Limits{}) != nil {
		return true
	}
	for account := range a.Clusters {
		if m.ours.Has(account) {
			return false
		}
	}
	return true
}

// mayHaveObjects reports whether the upstream Clouddriver may have objects of an application. Its applications are those with
// workloads, so for others it is asked once, and then again in the background.
func (m *merge) mayHaveObjects(application string) bool {
	index, request := m.answers.index, m.requestOfCaller()
	if index.hasApplication(application, m.ours) != no {
		return true
	}
	at := index.wasEmpty(request)
	if !at.IsZero() && time.Since(at) > m.client.RefreshInterval {
		m.revalidate(request)
	}
	return at.IsZero()
}

// callerHeaders are those by which the upstream Clouddriver decides what a caller may see.
var callerHeaders = []string{"X-Spinnaker-User", "X-Spinnaker-Accounts", "X-Spinnaker-Roles", "Authorization"}

// requestOfCaller identifies a request with who sends it: the upstream Clouddriver leaves out what a user may not see, so that a list is
// empty for one and not for another.
func (m *merge) requestOfCaller() string {
	parts := []string{m.r.URL.RequestURI()}
	for _, name := range callerHeaders {
		parts = append(parts, strings.Join(m.r.Header.Values(name), ","))
	}
	digest := sha256.Sum256([]byte(strings.Join(parts, "\n"))) // credentials are not kept
	return string(digest[:])
}

// mayHaveServerGroups decides about server groups by id, and about those of some applications.
func (m *merge) mayHaveServerGroups() bool {
	query := m.r.URL.Query()
	ids := strings.Split(strings.Join(query["ids"], ","), ",")
	applications := strings.Split(strings.Join(query["applications"], ","), ",")
	if query.Has("ids") && !query.Has("applications") {
		return slices.ContainsFunc(ids, func(id string) bool {
			account, _, _ := strings.Cut(id, ":")
			return !m.ours.Has(account)
		})
	}
	const maxLookups = 20 // each may read this server's objects
	return len(applications) > maxLookups || slices.ContainsFunc(applications, m.mayHave)
}

// revalidate asks in the background whether a list is still empty.
func (m *merge) revalidate(request string) {
	caller, path := m.r.Header.Clone(), *m.r.URL
	m.answers.inBackground(m.ctx, request, caller, &path, func(isEmpty bool) { m.answers.index.setEmpty(request, isEmpty) })
}
