package api_test

import (
	"encoding/json"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/api"
)

// TestAbsentAccountIsExplained asks about an account that an agent has and could not register, in each way in which an account is named.
func TestAbsentAccountIsExplained(t *testing.T) {
	world := shopWorld(t)
	agent := func(id vedette.AgentID, accounts ...api.AgentAccount) api.Agent {
		return api.Agent{ID: id, Accounts: accounts}
	}
	world.Fleet.SetAgents(agent("a1", api.AgentAccount{Name: "dev", Role: api.Cacher}, api.AgentAccount{Name: "west", Role: api.Reaching, Message: "no kubeconfig"}),
		agent("a2", api.AgentAccount{Name: "north", Role: api.Refused, Message: "the name is taken"}, api.AgentAccount{Name: "new", Role: api.Cacher}))
	w := serve(t, configOf(world))
	const rest = " has it, and could not register it: `vedette agents` says why"
	for path, want := range map[string]string{
		"/objects?account=west":     `there is no account "west": agent a1` + rest,
		"/objects?account=dev,west": `there is no account "west": agent a1` + rest,
		"/accounts/north":           `there is no account "north": agent a2` + rest,
		"/objects/west/pods/shop/x": `there is no account "west": agent a1` + rest,
		"/operations?account=north": `there is no account "north": agent a2` + rest,
		"/accounts/new":             `there is no account "new": there are dev, prod-1 and prod-3`,
		"/accounts/zebra":           `there is no account "zebra": there are dev, prod-1 and prod-3`,
	} {
		response, body := w.get(path)
		var got struct {
			Error struct{ Kind, Message string }
		}
		if err := json.Unmarshal(body, &got); err != nil || response.StatusCode != 404 || got.Error.Kind != "not_found" || got.Error.Message != want {
			t.Errorf("%s: got %d %s, %v, want %q", path, response.StatusCode, body, err, want)
		}
	}
}
