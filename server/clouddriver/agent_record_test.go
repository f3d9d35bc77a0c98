package clouddriver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestAgentsHaveScaleAgentsFormat shows agents and accounts as the Scale Agent did: an account that one agent reports while another one
// waits, one that its only agent cannot reach, and one without agents.
func TestAgentsHaveScaleAgentsFormat(t *testing.T) {
	w := readtest.New(t)
	w.Register(vedette.Account{Name: "prod", Properties: vedette.Properties{Permissions: &vedette.Permissions{Read: []string{"dev"}}}}, "pods", "namespaces")
	w.Account("dark", "pods")
	w.Account("alone", "pods")
	heard := time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	agents := []clouddriver.Agent{
		{ID: "agent-a", Server: "server-1", ZoneID: "zone", LastHeartbeat: heard, Accounts: []clouddriver.AgentAccount{
			{Name: "prod", Reports: true}, {Name: "dark", Message: "the cluster does not answer"}}},
		{ID: "agent-b", Server: "server-2", ZoneID: "zone", LastHeartbeat: heard, Accounts: []clouddriver.AgentAccount{{Name: "prod", StandsBy: true}}},
		{ID: "agent-b", Server: "server-1", LastHeartbeat: heard.Add(-time.Second)},
	}
	var silent []vedette.ServerID
	url := serve(t, clouddriver.Config{Store: w.Store, Agents: func(context.Context) ([]clouddriver.Agent, []vedette.ServerID) { return agents, silent }})
	const (
		agentA = `{"accounts":["prod","dark"],"agentId":"agent-a","caching":true,"clouddriverId":"server-1","lastConnection":"2026-02-03T04:05:06.789Z","type":"kubernetes"}`
		agentB = `{"accounts":["prod"],"agentId":"agent-b","caching":false,"clouddriverId":"server-2","lastConnection":"2026-02-03T04:05:06.789Z","type":"kubernetes"}`
		oldB   = `{"accounts":[],"agentId":"agent-b","caching":false,"clouddriverId":"server-1","lastConnection":"2026-02-03T04:05:05.789Z","type":"kubernetes"}`
		prod   = `{"name":"prod","type":"kubernetes","source":"static-agent-config","config":{},"zoneId":"zone","agents":[{"agentId":"agent-a","caching":true},` +
			`{"agentId":"agent-b","caching":false}],"status":"ACTIVE","dynamic":false,"permissions":{"READ":["dev"],"WRITE":[]},"lastAssignmentMsg":"successfully assigned to Agent agent-a"}`
		dark = `{"name":"dark","type":"kubernetes","source":"static-agent-config","config":{},"agents":[],"status":"ORPHANED","dynamic":false,` +
			`"lastAssignmentMsg":"Agent agent-a: the cluster does not answer"}`
		alone = `{"name":"alone","type":"kubernetes","source":"static-agent-config","config":{},"agents":[],"status":"ORPHANED","dynamic":false,` +
			`"lastAssignmentMsg":"no agent of the account is connected"}`
	)
	expect := func(path string, status int, want string) {
		t.Helper()
		response, answer := get(t, url+path)
		body := strings.TrimSpace(string(answer))
		if response.StatusCode != status || status == 200 && body != want || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %s, want %d %s", path, response.StatusCode, body, status, want)
		}
	}
	expect("/armory/agents", 200, "["+agentA+","+agentB+","+oldB+"]")
	expect("/armory/agents/", 200, "["+agentA+","+agentB+","+oldB+"]")
	expect("/armory/agents/agent-b", 200, agentB)
	expect("/armory/agents/AGENT-B", 404, `"status":404`)
	expect("/armory/accounts", 200, `{"items":[`+alone+","+dark+","+prod+`],"page":1,"limit":100,"total":3}`)
	expect("/armory/accounts?limit=2&page=2", 200, `{"items":[`+prod+`],"page":2,"limit":2,"total":3}`)
	expect("/armory/accounts?limit=2&page=3", 200, `{"items":[],"page":3,"limit":2,"total":3}`)
	for _, query := range []string{"limit=0", "limit=1001", "page=x", "page=100001", "page=-1"} {
		expect("/armory/accounts?"+query, 400, "must be a number from 1 to")
	}
	for _, path := range []string{"/armory/accounts/", "/agents/kubernetes/accounts/"} {
		expect(path+"prod", 200, prod)
		expect(path+"dark", 200, dark)
		expect(path+"Prod", 404, `"status":404`)
	}
	expect("/agents/kubernetes/accounts/nobody/namespaces", 404, `"status":404`)
	w.Put("prod", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)
	expect("/agents/kubernetes/accounts/prod/namespaces", 200, `["shop"]`)

	// A server that says nothing may have any agent.
	silent = []vedette.ServerID{"server-2"}
	for _, path := range []string{"/armory/agents", "/armory/agents/nobody", "/armory/accounts", "/armory/accounts/prod"} {
		expect(path, 503, "the servers server-2 do not say which agents are connected to them")
	}
}
