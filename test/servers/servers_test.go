package servers

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
)

type object = map[string]any

// outcome is the answer to an operation.
type outcome struct {
	ID, State, Reason, Message string
	Status                     int
}

// operate sends an operation to a server.
func (s *oneServer) operate(account vedette.AccountName, op object) outcome {
	s.in.t.Helper()
	op["account"] = account
	if op["timeout"] == nil {
		op["timeout"] = "20s"
	}
	var out outcome
	s.do(http.MethodPost, "/vedette/v1/operations", op, &out)
	return out
}

func configMap(name, value string) object {
	return object{"verb": "apply", "manifest": object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "namespace": "default"},
		"data": object{"value": value}}}
}

func deployment(name string) object {
	labels := object{"app": name}
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name}, "spec": object{"replicas": 0,
		"selector": object{"matchLabels": labels}, "template": object{"metadata": object{"labels": labels},
			"spec": object{"containers": []object{{"name": "c", "image": "i"}}}}}}
}

// readValue returns the value of a ConfigMap as a server answers it from its store; empty if there is none.
func (s *oneServer) readValue(account vedette.AccountName, name string) string {
	s.in.t.Helper()
	var answer struct {
		Manifest struct{ Data struct{ Value string } }
	}
	s.get(fmt.Sprintf("/vedette/v1/objects/%s/configmaps/default/%s", account, name), &answer)
	return answer.Manifest.Data.Value
}

// TestAnyServer has three servers and an agent at one of them. Whichever server is asked carries out operations, and whichever is asked
// then answers what they have written.
func TestAnyServer(t *testing.T) {
	onSharedDatabases(t, func(t *testing.T, url string) {
		in := newInstallation(t, url)
		servers := []*oneServer{in.startServer("s0"), in.startServer("s1"), in.startServer("s2")}
		in.startAgent("a1", servers[1], "one", "ConfigMap", "Deployment")
		for _, s := range servers {
			s.awaitLive("one", 2)
		}
		for round := range 30 {
			writer, reader := servers[round%3], servers[round/3%3]
			value := fmt.Sprint("value-", round)
			if out := writer.operate("one", configMap("any", value)); out.State != "done" {
				t.Fatalf("round %d: got %+v", round, out)
			}
			if got := reader.readValue("one", "any"); got != value {
				t.Errorf("round %d: server %d answers %q after server %d has written %q", round, round/3%3, got, round%3, value)
			}
		}
		if out := servers[2].operate("one", object{"verb": "delete", "kind": "ConfigMap", "name": "any", "namespace": "default"}); out.State != "done" {
			t.Fatalf("delete: got %+v", out)
		}
		if got := servers[0].readValue("one", "any"); got != "" {
			t.Errorf("server 0 answers %q after server 2 has deleted it", got)
		}
		// What the cluster changes by itself is seen everywhere, also in views that are kept in memory.
		application := "view" + strings.ToLower(path.Base(t.Name()))
		clusters := func(s *oneServer) int {
			var list map[string][]string
			s.get("/applications/"+application+"/clusters", &list)
			return len(list["one"])
		}
		for _, s := range servers {
			clusters(s) // fills its caches
		}
		if err := plane.Create(t.Context(), "/apis/apps/v1/namespaces/default/deployments", deployment(application)); err != nil {
			t.Fatal(err)
		}
		for i, s := range servers {
			in.await(fmt.Sprintf("the cluster at server %d", i), func() bool { return clusters(s) > 0 })
		}
	})
}

// TestAccountsThatAreRemoved removes accounts at one server, whose agents have gone, and lists the accounts at the others at once.
func TestAccountsThatAreRemoved(t *testing.T) {
	onSharedDatabases(t, func(t *testing.T, url string) {
		in := newInstallation(t, url)
		servers := []*oneServer{in.startServer("s0"), in.startServer("s1"), in.startServer("s2")}
		names := func(s *oneServer) (all []string) {
			var list []struct{ Name string }
			s.get("/credentials", &list)
			for _, account := range list {
				all = append(all, account.Name)
			}
			return all
		}
		for round := range 6 {
			account := vedette.AccountName(fmt.Sprint("removed-", round))
			stop := in.startAgent(vedette.AgentID(account), servers[round%3], account, "ConfigMap")
			for _, s := range servers {
				s.awaitLive(account, 1)
				in.await("the account", func() bool { return slices.Contains(names(s), string(account)) })
			}
			stop()
			at := servers[(round+1)%3]
			in.await("the removal", func() bool {
				return at.do(http.MethodPost, "/vedette/v1/accounts/"+string(account)+"/release", object{}, nil) == http.StatusOK
			})
			for i, s := range servers {
				if all := names(s); slices.Contains(all, string(account)) {
					t.Errorf("round %d: server %d lists %v after the account was removed", round, i, all)
				}
			}
		}
	})
}

// TestServersThatEnd stops the server of an agent, and lets an agent at another server take its account over.
func TestServersThatEnd(t *testing.T) {
	onSharedDatabases(t, func(t *testing.T, url string) {
		in := newInstallation(t, url)
		first, second := in.startServer("s0"), in.startServer("s1")
		in.startAgent("a1", first, "one", "ConfigMap")
		first.awaitLive("one", 1)
		in.startAgent("a2", second, "one", "ConfigMap")
		second.awaitLive("one", 1)
		agents := func(s *oneServer) (roles map[string]string) {
			var list struct {
				Items []struct {
					ID, Server string
					Accounts   []struct{ Name, Role string }
				}
			}
			s.get("/vedette/v1/agents", &list)
			roles = map[string]string{}
			for _, a := range list.Items {
				for _, account := range a.Accounts {
					roles[a.ID+" at "+a.Server] = account.Role
				}
			}
			return roles
		}
		for _, s := range []*oneServer{first, second} { // each shows the agents of both
			in.await("both agents", func() bool {
				roles := agents(s)
				return roles["a1 at s0"] == "cacher" && roles["a2 at s1"] == "standby"
			})
		}
		var wg sync.WaitGroup
		wg.Go(first.stop)
		in.await("the takeover", func() bool { return agents(second)["a2 at s1"] == "cacher" })
		second.awaitLive("one", 1)
		wg.Wait()
		if out := second.operate("one", configMap("ended", "x")); out.State != "done" {
			t.Errorf("got %+v", out)
		}
		if got := second.readValue("one", "ended"); got != "x" {
			t.Errorf("got %q, want what was written", got)
		}
		began := time.Now()
		third := in.startServer("s0") // the same id again
		third.awaitLive("one", 1)
		t.Logf("a server with the id of one that has stopped answers after %v", time.Since(began).Round(time.Millisecond))
		if out := third.operate("one", configMap("ended", "y")); out.State != "done" {
			t.Errorf("got %+v", out)
		}
	})
}
