package beside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vedette-io/vedette/test/beside/standin"
)

// Agents and servers of the predecessor, which stay connected to its plugin until their cluster has moved.
const (
	oldServer = "spin-clouddriver-766c678c6c-scg68"
	oldEast   = "armory-agent-east"
	oldWest   = "armory-agent-west"
)

// pluginWith returns the plugin with those of its agents that are still connected.
func pluginWith(agents ...string) *standin.Plugin {
	p := &standin.Plugin{Servers: []string{oldServer}}
	for _, id := range agents {
		account := strings.TrimPrefix(id, "armory-agent-")
		p.Agents = append(p.Agents, standin.PluginAgent{ID: id, Accounts: []string{account}, Server: oldServer})
	}
	for i, account := range []string{east, west} {
		p.Operations = append(p.Operations, standin.PluginOperation{ID: "01FRKFMF52JBWB3ZW1K3676P8" + string(rune('A'+i)), Type: "Deploy", Account: account,
			Agent: "armory-agent-" + account, Server: oldServer, Started: time.Unix(1_700_000_000+int64(i), 0)})
	}
	return p
}

// sighting is who must be seen now. Between two steps it is empty.
type sighting struct {
	mu    sync.Mutex
	must  []string
	since time.Time
}

func (s *sighting) set(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.must, s.since = ids, time.Now()
}

// expected returns who must be in an answer to a request that began at a time; nil if that is not known.
func (s *sighting) expected(began time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if began.Before(s.since) {
		return nil
	}
	return s.must
}

// TestAgentsOfBothAreSeen moves one of two clusters from agents of the predecessor's plugin to an agent of this server. Whoever reads the
// predecessor's lists meanwhile sees the agents of both, in each answer: no agent is lost from sight before it is stopped.
func TestAgentsOfBothAreSeen(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts a cluster")
	}
	clusters := startClusters(t, west)
	upstream := startStandIn(t, clusters)
	upstream.SetAccounts([]standin.Account{{Name: east}, {Name: west}})
	in := newInstallation(t, settings{upstream: upstream.URL(), timeouts: shortTimeouts, grace: time.Hour})
	in.checkList(t, "/armory/agents", "agentId") // a Clouddriver without the plugin has none

	upstream.SetPlugin(pluginWith(oldEast, oldWest))
	seen := &sighting{}
	seen.set(oldEast, oldWest)
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	var answers, errorAnswers int
	reading.Go(func() {
		for sleep(ctx, 10*time.Millisecond) {
			a := send(ctx, http.MethodGet, in.url+"/armory/agents", nil)
			want := seen.expected(a.began)
			switch ids, err := listed(a, "agentId"); {
			case ctx.Err() != nil:
			case a.err == nil && a.status == http.StatusServiceUnavailable:
				errorAnswers++ // never half of the list
			case err != nil:
				t.Errorf("%v", err)
			case !slices.Equal(seen.expected(time.Now()), want): // it changed meanwhile
			default:
				answers++
				for _, id := range want {
					if !slices.Contains(ids, id) {
						t.Errorf("got the agents %v, want all of %v", ids, want)
					}
				}
			}
		}
	})
	in.checkIDs(t, "before", oldEast, oldWest)

	agent := in.newAgent(west, clusters[west].Kubeconfig())
	agent.Start() // while the old agent still runs
	newWest := "agent-" + west
	await(t, 2*time.Minute, "west is synchronized", func(ctx context.Context) error { return in.checkSynchronized(ctx, west) })
	seen.set(oldEast, oldWest, newWest)
	in.checkIDs(t, "both agents of west run", oldEast, oldWest, newWest)

	upstream.Freeze()
	if a := send(t.Context(), http.MethodGet, in.url+"/armory/agents", nil); a.status != http.StatusServiceUnavailable {
		t.Errorf("with a frozen Clouddriver: got %v, want 503", a)
	}
	in.checkObject(t, "/armory/agents/"+newWest, "agentId", newWest) // ours does not wait
	in.checkObject(t, "/agents/kubernetes/accounts/"+west, "name", west)
	upstream.Thaw()

	seen.set(oldEast, newWest)
	upstream.SetPlugin(pluginWith(oldEast)) // the old agent of west is stopped
	in.checkIDs(t, "west has moved", oldEast, newWest)

	in.checkList(t, "/armory/clouddrivers", "id", in.serverID(t), oldServer)
	in.checkObject(t, "/armory/clouddrivers/"+oldServer, "id", oldServer)
	in.checkList(t, "/armory/agent/operations", "operationId", "01FRKFMF52JBWB3ZW1K3676P8A", "01FRKFMF52JBWB3ZW1K3676P8B")
	in.checkObject(t, "/armory/agent/operations/01FRKFMF52JBWB3ZW1K3676P8A", "operationId", "01FRKFMF52JBWB3ZW1K3676P8A")
	for account, agent := range map[string]string{east: oldEast, west: newWest} {
		a := send(t.Context(), http.MethodGet, in.url+"/agents/kubernetes/accounts/"+account, nil)
		if a.status != http.StatusOK || !strings.Contains(string(a.body), `"agentId":"`+agent+`"`) {
			t.Errorf("%s: got %v, want its agent %s", account, a, agent)
		}
	}
	if a := send(t.Context(), http.MethodGet, in.url+"/agents/kubernetes/accounts/"+west+"/namespaces", nil); !strings.Contains(string(a.body), `"`+namespace+`"`) {
		t.Errorf("got %v, want the namespaces of west", a)
	}
	if a := send(t.Context(), http.MethodGet, in.url+"/armory/agents/nobody", nil); a.status != http.StatusNotFound {
		t.Errorf("got %v for an agent that nobody has, want 404", a)
	}

	upstream.SetPlugin(nil)
	seen.set(newWest)
	in.checkIDs(t, "the plugin is removed", newWest)
	stop()
	reading.Wait()
	t.Logf("%d lists were whole, and %d requests were answered with 503 while the Clouddriver was frozen", answers, errorAnswers)
	if answers == 0 {
		t.Error("no list was read")
	}
}

// listed returns a member of all elements of a list.
func listed(a answer, member string) ([]string, error) {
	var list []map[string]json.RawMessage
	if a.err != nil || a.status != http.StatusOK || json.Unmarshal(a.body, &list) != nil || a.header.Get("X-Vedette-Incomplete") != "" {
		return nil, errors.New(a.String())
	}
	ids := map[string]bool{}
	for _, element := range list {
		var id string
		if err := json.Unmarshal(element[member], &id); err != nil || ids[id] {
			return nil, fmt.Errorf("an element without %s, or twice: %v", member, a)
		}
		ids[id] = true
	}
	return slices.Sorted(maps.Keys(ids)), nil
}

// checkList checks a list at once.
func (in *installation) checkList(t *testing.T, path, member string, want ...string) {
	t.Helper()
	slices.Sort(want)
	got, err := listed(send(t.Context(), http.MethodGet, in.url+path, nil), member)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: got %v, %v, want %v", path, got, err, want)
	}
}

// checkIDs checks the list of agents, and that each of them is found by its id.
func (in *installation) checkIDs(t *testing.T, step string, want ...string) {
	t.Helper()
	t.Log(step)
	in.checkList(t, "/armory/agents", "agentId", want...)
	for _, id := range want {
		in.checkObject(t, "/armory/agents/"+id, "agentId", id)
	}
}

func (in *installation) checkObject(t *testing.T, path, member, want string) {
	t.Helper()
	a := send(t.Context(), http.MethodGet, in.url+path, nil)
	var object map[string]json.RawMessage
	if a.err != nil || a.status != http.StatusOK || json.Unmarshal(a.body, &object) != nil || string(object[member]) != `"`+want+`"` {
		t.Errorf("%s: got %v, want %s %s", path, a, member, want)
	}
}

// serverID returns the id of the server under test.
func (in *installation) serverID(t *testing.T) string {
	t.Helper()
	a := send(t.Context(), http.MethodGet, in.url+"/armory/agents/agent-"+west, nil)
	var agent struct {
		ClouddriverID string `json:"clouddriverId"`
	}
	if err := json.Unmarshal(a.body, &agent); err != nil || agent.ClouddriverID == "" {
		t.Fatalf("got %v", a)
	}
	return agent.ClouddriverID
}
