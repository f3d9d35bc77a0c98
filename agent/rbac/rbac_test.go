package rbac

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/watch"
)

// apiServer answers reviews. Everything is allowed but what denied lists as "verb resource".
type apiServer struct {
	user   string
	denied []string
	status int // of all responses if it is not zero

	mu    sync.Mutex
	asked []string
}

func (s *apiServer) Do(_ context.Context, r kube.Request) (*http.Response, error) {
	if s.status != 0 {
		return answer(s.status, `{"kind":"Status","code":1,"reason":"Because","message":"no"}`), nil
	}
	if strings.HasSuffix(r.Path, "/selfsubjectreviews") {
		if s.user == "" {
			return answer(http.StatusNotFound, "404 page not found"), nil
		}
		return answer(http.StatusCreated, fmt.Sprintf(`{"status":{"userInfo":{"username":%q}}}`, s.user)), nil
	}
	var review struct {
		Spec struct{ ResourceAttributes resourceAttributes }
	}
	if err := json.Unmarshal(r.Body, &review); err != nil {
		return nil, err
	}
	a := review.Spec.ResourceAttributes
	asked := strings.TrimSuffix(a.Verb+" "+a.Resource+"/"+a.Subresource, "/")
	s.mu.Lock()
	s.asked = append(s.asked, asked)
	s.mu.Unlock()
	allowed := true
	for _, denied := range s.denied {
		allowed = allowed && asked != denied
	}
	return answer(http.StatusCreated, fmt.Sprintf(`{"status":{"allowed":%v}}`, allowed)), nil
}

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body))}
}

func feed(kind, plural, namespace string) watch.FeedSpec {
	k := vedette.ParseKind(kind)
	return watch.FeedSpec{Feed: vedette.Feed{Kind: k, Namespace: namespace}, Resource: vedette.Resource{Kind: k, Version: "v1", Plural: plural}}
}

func report(t *testing.T, s *apiServer, account vedette.AccountName, needs Needs) string {
	t.Helper()
	r, err := NewReport(t.Context(), s, "https://10.0.0.1", account, needs)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestClusterWideRules(t *testing.T) {
	s := &apiServer{user: "system:serviceaccount:agents:vedette", denied: []string{"watch pods", "list services", "watch services", "get services", "create services",
		"update services", "patch services", "delete services"}}
	got := report(t, s, "prod", Needs{Cached: []watch.FeedSpec{feed("Pod", "pods", ""), feed("Service", "services", ""), feed("ConfigMap", "configmaps", "")}})
	const want = `# The rules that account "prod" needs in "https://10.0.0.1".
# Rights on 2 of 9 resources are missing now, or a part of them; comments mark them.
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "vedette-prod"}
rules:
- {apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch", "create", "update", "patch", "delete"]}
- {apiGroups: [""], resources: ["events", "namespaces"], verbs: ["list"]}
- {apiGroups: [""], resources: ["namespaces"], verbs: ["get"], resourceNames: ["kube-system"]}
- {apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch", "create", "update", "patch", "delete"]} # missing: watch
- {apiGroups: [""], resources: ["pods/log"], verbs: ["get"]}
- {apiGroups: [""], resources: ["services"], verbs: ["get", "list", "watch", "create", "update", "patch", "delete"]} # missing
- {apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["list", "watch"]}
- {apiGroups: ["apiregistration.k8s.io"], resources: ["apiservices"], verbs: ["list", "watch"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "vedette-prod"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "vedette-prod"}
subjects:
- {kind: ServiceAccount, name: "vedette", namespace: "agents"}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNamespacedAccountsGetRoles(t *testing.T) {
	synthetic := feed("Namespace", "namespaces", "")
	synthetic.Objects = [][]byte{[]byte("{}")}
	got := report(t, &apiServer{user: "jane"}, "a/b%", Needs{ReadOnly: true, OnlyNamespaced: true, Metrics: true, Namespaces: []string{"one", "two"},
		Cached:  []watch.FeedSpec{feed("Pod", "pods", "one"), feed("Pod", "pods", "two"), synthetic},
		Changed: []watch.FeedSpec{feed("Deployment.apps", "deployments", "two")}})
	const want = `# The rules that account "a/b%" needs in "https://10.0.0.1".
# Nothing is missing: the agent has all rights on the 10 resources.
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "vedette-a-b-", namespace: "one"}
rules:
- {apiGroups: [""], resources: ["events"], verbs: ["list"]}
- {apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"]}
- {apiGroups: [""], resources: ["pods/log"], verbs: ["get"]}
- {apiGroups: ["metrics.k8s.io"], resources: ["pods"], verbs: ["get", "list"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "vedette-a-b-", namespace: "one"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "vedette-a-b-"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "jane"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "vedette-a-b-", namespace: "two"}
rules:
- {apiGroups: [""], resources: ["events"], verbs: ["list"]}
- {apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"]}
- {apiGroups: [""], resources: ["pods/log"], verbs: ["get"]}
- {apiGroups: ["apps"], resources: ["deployments"], verbs: ["get", "list"]}
- {apiGroups: ["apps"], resources: ["replicasets"], verbs: ["list"]}
- {apiGroups: ["metrics.k8s.io"], resources: ["pods"], verbs: ["get", "list"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: "vedette-a-b-", namespace: "two"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "vedette-a-b-"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "jane"}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestRulesOfWorkloads checks what operations on workloads need besides the workloads.
func TestRulesOfWorkloads(t *testing.T) {
	s := &apiServer{}
	got := report(t, s, "prod", Needs{Cached: []watch.FeedSpec{feed("Deployment.apps", "deployments", ""), feed("StatefulSet.apps", "statefulsets", ""),
		feed("DaemonSet.apps", "daemonsets", ""), feed("ReplicaSet.apps", "replicasets", ""), feed("Namespace", "namespaces", "")}})
	for _, want := range []string{`resources: ["controllerrevisions"], verbs: ["list"]`,
		`resources: ["deployments/scale", "replicasets/scale", "statefulsets/scale"], verbs: ["patch"]`, `name: "REPLACE-ME"`, "replace REPLACE-ME"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s in it", got, want)
		}
	}
	if strings.Contains(got, "resourceNames") {
		t.Errorf("got\n%s\nwant no rule for kube-system, because all namespaces may be read", got)
	}
	if !strings.Contains(strings.Join(s.asked, "; "), "patch deployments/scale;") {
		t.Errorf("asked %q, want the subresource apart", s.asked)
	}
}

func TestReviewErrorsNameTheUser(t *testing.T) {
	for status, want := range map[int]string{http.StatusForbidden: "403 Because: no", http.StatusUnauthorized: "401", http.StatusInternalServerError: "500"} {
		_, err := NewReport(t.Context(), &apiServer{status: status}, "h", "prod", Needs{})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the agent's user") {
			t.Errorf("status %d: got %v, want %q", status, err, want)
		}
	}
	if err := (&Report{}).Write(brokenWriter{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a broken writer: got %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestRulesForServers checks that an agent that chooses among servers may list their endpoints, in their namespace only.
func TestRulesForServers(t *testing.T) {
	const want = `kind: Role
metadata: {name: "vedette-prod", namespace: "spinnaker"}
rules:
- {apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list"]} # missing
`
	s := &apiServer{user: "jane", denied: []string{"list endpointslices"}}
	if got := report(t, s, "prod", Needs{Servers: "spinnaker"}); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := report(t, s, "prod", Needs{}); strings.Contains(got, "endpointslices") {
		t.Errorf("got %s, want nothing about the servers", got)
	}
}
