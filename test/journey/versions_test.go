package journey

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/task"
)

// TestConcurrentDeploymentsKeepTheirVersions deploys one versioned object several times at once, in
// rounds, and checks that the object of each deployment holds what it deployed.
func TestConcurrentDeploymentsKeepTheirVersions(t *testing.T) {
	w := newOperationsEnv(t)
	w.createNamespace("versions")
	tasks := task.New(task.Config{Server: "s1", Store: w.store, Accounts: w.store, Dispatch: w.Dispatcher, Log: w.log,
		Timeout: 3 * time.Minute}) // digests of Secrets take long on purpose
	t.Cleanup(runInBackground(t, tasks.Run))
	rest := clouddriver.New(clouddriver.Config{Store: w.store, Dispatch: w.Dispatcher, Tasks: tasks, Log: w.log})
	for _, tt := range []struct{ name, manifest, path, annotations string }{
		{"a ConfigMap", `{"apiVersion":"v1","kind":"ConfigMap","metadata":%s,"data":{"owner":%q}}`, "/api/v1/namespaces/versions/configmaps/", `{}`},
		{"a replaced ConfigMap", `{"apiVersion":"v1","kind":"ConfigMap","metadata":%s,"data":{"owner":%q}}`, "/api/v1/namespaces/versions/configmaps/", `{"strategy.spinnaker.io/replace":"true"}`},
		{"a recreated ConfigMap", `{"apiVersion":"v1","kind":"ConfigMap","metadata":%s,"data":{"owner":%q}}`, "/api/v1/namespaces/versions/configmaps/", `{"strategy.spinnaker.io/recreate":"true"}`},
		{"a Secret", `{"apiVersion":"v1","kind":"Secret","metadata":%s,"stringData":{"owner":%q}}`, "/api/v1/namespaces/versions/secrets/", `{}`},
		{"a ReplicaSet", `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":%s,"spec":{"replicas":0,"selector":{"matchLabels":{"app":"x"}},
			"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"owner","image":%q}]}}}}`, "/apis/apps/v1/namespaces/versions/replicasets/", `{}`},
		{"a Deployment", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":%s,"spec":{"replicas":0,"selector":{"matchLabels":{"app":"x"}},
			"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"owner","image":%q}]}}}}`, "/apis/apps/v1/namespaces/versions/deployments/",
			`{"strategy.spinnaker.io/versioned":"true","strategy.spinnaker.io/server-side-apply":"true"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			meta := fmt.Sprintf(`{"name":%q,"namespace":"versions","annotations":%s}`, strings.ToLower(strings.ReplaceAll(tt.name, " ", "-")), tt.annotations)
			versions := map[string]string{} // the owner by the name of the object
			rounds, deployments := 2, 8
			if tt.name == "a Secret" {
				rounds, deployments = 1, 4 // the digest of each takes seconds under the race detector
			}
			for round := range rounds {
				var mu sync.Mutex
				var all sync.WaitGroup
				for i := range deployments {
					all.Go(func() {
						owner := fmt.Sprintf("owner-%d-%d", round, i)
						o := &orcaClient{t: t, rest: rest}
						result := o.run("deployManifest", `{"account":"one","moniker":{"app":"web"},"manifests":[`+fmt.Sprintf(tt.manifest, meta, owner)+`]}`)
						var names map[string][]string
						if err := json.Unmarshal([]byte(result), &names); err != nil {
							t.Errorf("the deployment of %s: got %s, want a success", owner, result)
							return
						}
						_, name, _ := strings.Cut(names["versions"][0], " ")
						mu.Lock()
						defer mu.Unlock()
						if versions[name] != "" {
							t.Errorf("%s: got the version of %s and of %s", name, versions[name], owner)
						}
						versions[name] = owner
					})
				}
				all.Wait()
			}
			for name, owner := range versions {
				if got := ownerOf(t, tt.path+name); got != owner {
					t.Errorf("%s: got the object of %s, want that of %s", name, got, owner)
				}
			}
		})
	}
}

// ownerOf returns what one deployment wrote into an object.
func ownerOf(t *testing.T, path string) string {
	t.Helper()
	var o struct {
		Data map[string]string
		Kind string
		Spec struct {
			Template struct {
				Spec struct{ Containers []struct{ Image string } }
			}
		}
	}
	if err := plane.Get(t.Context(), path, &o); err != nil {
		t.Error(err)
		return ""
	}
	switch {
	case o.Kind == "Secret":
		var raw []byte
		if err := json.Unmarshal([]byte(`"`+o.Data["owner"]+`"`), &raw); err != nil {
			t.Error(err)
		}
		return string(raw)
	case o.Data != nil:
		return o.Data["owner"]
	}
	return o.Spec.Template.Spec.Containers[0].Image
}
