package convergence

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// requests returns an agent's requests to a cluster so far, for example "list /api/v1/pods", in the
// order of the responses.
func (c *cluster) requests(w *world, agent string) []string {
	w.t.Helper()
	file, err := os.Open(c.audit)
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	var found []string
	seen := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			AuditID, Verb, RequestURI string
			User                      struct{ Username string }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			w.t.Fatalf("read %s: %v", c.audit, err)
		}
		if e.User.Username != agent || seen[e.AuditID] {
			continue
		}
		seen[e.AuditID] = true
		found = append(found, e.Verb+" "+e.RequestURI)
	}
	return found
}

// listRequests returns the requests that list all objects of a kind. It omits lists of the names of
// namespaces, which identify the cluster at each registration.
func listRequests(requests []string) (found []string) {
	for _, r := range requests {
		if strings.HasPrefix(r, "list ") || strings.Contains(r, "sendInitialEvents") {
			found = append(found, r)
		}
	}
	return found
}

// withoutPeriodic omits the requests that an agent sends now and then: it checks that its credentials are valid
// and that it is still connected to the same cluster, and asks for the kinds that exist. A watcher that was
// started again would also send watches or lists.
func withoutPeriodic(requests []string) []string {
	periodic := []string{"get /version", "get /api/v1/namespaces/kube-system", "get /api", "get /apis"}
	return slices.DeleteFunc(requests, func(r string) bool { return slices.Contains(periodic, r) })
}
