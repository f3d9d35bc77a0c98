package standin

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"1",
		"annotations":{"moniker.spinnaker.io/application":"shop","moniker.spinnaker.io/cluster":"deployment web"}}}`
	replicaSet = `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-1","namespace":"shop","uid":"2","ownerReferences":[{"uid":"1"}],
		"annotations":{"moniker.spinnaker.io/application":"shop","moniker.spinnaker.io/cluster":"deployment web"}},
		"spec":{"replicas":1,"template":{"metadata":{"labels":{"app":"web"}}}}}`
	service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop","uid":"3",
		"annotations":{"moniker.spinnaker.io/application":"shop","moniker.spinnaker.io/cluster":"service web"}},"spec":{"selector":{"app":"web"}}}`
)

// start starts a stand-in with one application.
func start(t *testing.T) *Server {
	t.Helper()
	var objects []Object
	for _, raw := range []string{deployment, replicaSet, service} {
		o, err := ParseObject("prod", []byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return Start(t, []Account{{Name: "prod"}, {Name: "other", Provider: "aws"}}, objects)
}

// send returns the status and the body, or the error of reading them.
func (s *Server) send(t *testing.T, method, path, body string) (int, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}

func TestStandInAnswersLikeClouddriver(t *testing.T) {
	s := start(t)
	for path, wanted := range map[string][]string{
		"/credentials":                                  {`"name":"prod"`, `"name":"other"`, `"type":"aws"`},
		"/credentials/prod":                             {`"namespaces":["shop"]`},
		"/applications":                                 {`"clusterNames":{"prod":["deployment web"]}`},
		"/applications/shop":                            {`"clusters":{"prod":[{`, `"name":"deployment web"`},
		"/applications/nothing":                         {`"status":404`},
		"/applications/shop/clusters":                   {`{"prod":["deployment web"]}`},
		"/applications/shop/serverGroups?expand=true":   {`"name":"replicaSet web-1"`, `"loadBalancers":["service web"]`, `"name":"web"`, `"zones":[]`},
		"/serverGroups?ids=prod:shop:replicaSet+web-1":  {`"name":"replicaSet web-1"`},
		"/serverGroups?applications=shop,nothing":       {`"name":"replicaSet web-1"`},
		"/applications/shop/serverGroupManagers":        {`"name":"deployment web"`, `"name":"replicaSet web-1"`},
		"/applications/shop/loadBalancers":              {`"name":"service web"`, `"name":"replicaSet web-1"`},
		"/applications/shop/rawResources":               {`"name":"service web"`, `"name":"deployment web"`},
		"/manifests/prod/shop/deployment%20web":         {`"kind":"Deployment"`, AnsweredBy},
		"/search?q=web&type=serverGroups,loadBalancers": {`"totalMatches":2`},
		"/task/nothing":                                 {`"status":404`},
	} {
		_, body, err := s.send(t, http.MethodGet, path, "")
		for _, want := range wanted {
			if err != nil || !strings.Contains(body, want) {
				t.Errorf("%s: got %s, %v, want %s", path, body, err, want)
			}
		}
	}
	s.SetObjects(nil)
	if _, body, _ := s.send(t, http.MethodGet, "/applications/shop/clusters", ""); body != "{}" {
		t.Errorf("without objects: got %s, want {}", body)
	}
	s.SetAccounts(nil)
	if _, body, _ := s.send(t, http.MethodGet, "/credentials", ""); body != "[]" {
		t.Errorf("without accounts: got %s, want []", body)
	}
}

func TestOperationsRunOnce(t *testing.T) {
	s := start(t)
	const path, operation = "/kubernetes/ops?clientRequestId=r-1", `[{"scaleManifest":{"account":"prod"}}]`
	_, first, _ := s.send(t, http.MethodPost, path, operation)
	_, second, _ := s.send(t, http.MethodPost, path, operation)
	if runs := s.Runs(); first != second || len(runs) != 1 || runs[0].RequestID != "r-1" || runs[0].Account != "prod" {
		t.Errorf("got %s, then %s and %v, want one task and one run", first, second, runs)
	}
	if status, body, _ := s.send(t, http.MethodPost, path, `[{"scaleManifest":{"account":"nobody"}}]`); status != http.StatusBadRequest {
		t.Errorf("an unknown account: got %d %s, want 400", status, body)
	}
}

func TestEachFaultIsServed(t *testing.T) {
	s := start(t)
	_, honest, _ := s.send(t, http.MethodGet, "/credentials", "")
	for name, tt := range map[string]struct {
		fault  Fault
		status int
		body   string // a part
		err    error
	}{
		"delay":       {Delay(time.Millisecond), 200, honest, nil},
		"cut off":     {CutOff, 200, honest[:10], io.ErrUnexpectedEOF},
		"end early":   {EndEarly, 200, honest[:10], nil},
		"page":        {HTML, 200, "<html>", nil},
		"redirect":    {Redirect, 302, "/login", nil},
		"status":      {Status(502), 502, `"status":502`, nil},
		"huge":        {Huge(100_000), 200, `"elsewhere"`, nil},
		"duplicates":  {Duplicates, 200, honest[1:len(honest)-1] + "," + honest[1:len(honest)-1], nil},
		"claims":      {AlsoAs("prod", "theirs"), 200, `"name":"theirs"`, nil},
		"two lists":   {s.Flapping("other"), 200, `"prod"`, nil},
		"nothing bad": {nil, 200, honest, nil},
	} {
		s.Misbehave(tt.fault)
		status, body, err := s.send(t, http.MethodGet, "/credentials", "")
		if status != tt.status || !strings.Contains(body, tt.body) || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %d %s, %v, want %d %s, %v", name, status, body, err, tt.status, tt.body, tt.err)
		}
	}
	s.Misbehave(nil)
	s.Freeze()
	answered := make(chan string)
	go func() {
		_, body, _ := s.send(t, http.MethodGet, "/credentials", "")
		answered <- body
	}()
	select {
	case body := <-answered:
		t.Errorf("while it is frozen: got %s, want no answer", body)
	case <-time.After(50 * time.Millisecond):
	}
	s.Thaw()
	if body := <-answered; body != honest {
		t.Errorf("when it is no longer frozen: got %s, want %s", body, honest)
	}
}
