package standin

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Plugin is what a Clouddriver has that runs the Scale Agent plugin: agents, the operations that they got, and its own replicas. The
// answers have the form that the plugin's documentation shows. The plugin has no GET /armory/accounts.
type Plugin struct {
	Agents     []PluginAgent
	Operations []PluginOperation // the oldest first
	Servers    []string          // ids
}

// PluginAgent is an agent that is connected to the plugin.
type PluginAgent struct {
	ID       string
	Accounts []string
	Server   string
}

// PluginOperation is an operation that an agent of the plugin has executed.
type PluginOperation struct {
	ID, Type, Account, Agent, Server string
	Started                          time.Time
}

// SetPlugin gives the stand-in the plugin, or takes it away with nil.
func (s *Server) SetPlugin(p *Plugin) {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	s.state.plugin = p
}

// pluginRoutes are those of the plugin. Without it, they do not exist.
func (s *Server) pluginRoutes() map[string]func(*http.Request, snapshot) Answer {
	routes := map[string]func(*http.Request, snapshot) Answer{
		"GET /armory/agents":                                   pluginAgents,
		"GET /armory/agents/{id}":                              pluginAgent,
		"GET /armory/agent/operations":                         pluginOperations,
		"GET /armory/agent/operations/{id}":                    pluginOperation,
		"GET /armory/clouddrivers":                             pluginServers,
		"GET /armory/clouddrivers/{id}":                        pluginServer,
		"GET /agents/kubernetes/accounts/{account}":            pluginAccount,
		"GET /agents/kubernetes/accounts/{account}/namespaces": pluginNamespaces,
	}
	for pattern, derive := range routes {
		routes[pattern] = func(r *http.Request, now snapshot) Answer {
			if now.plugin == nil {
				return notFound("No endpoint " + r.Method + " " + r.URL.Path)
			}
			return derive(r, now)
		}
	}
	return routes
}

const pluginTime = "2006-01-02T15:04:05.000Z"

func (a PluginAgent) view() map[string]any {
	return map[string]any{"accounts": a.Accounts, "agentId": a.ID, "caching": true, "clouddriverId": a.Server,
		"lastConnection": time.Now().UTC().Format(pluginTime), "type": "kubernetes"}
}

func pluginAgents(_ *http.Request, now snapshot) Answer {
	views := []any{}
	for _, a := range now.plugin.Agents {
		views = append(views, a.view())
	}
	return answerJSON(views)
}

func pluginAgent(r *http.Request, now snapshot) Answer {
	for _, a := range now.plugin.Agents {
		if a.ID == r.PathValue("id") {
			return answerJSON(a.view())
		}
	}
	return notFound("Agent not found (id: " + r.PathValue("id") + ")")
}

func (o PluginOperation) view() map[string]any {
	at := o.Started.UnixMilli()
	server := map[string]any{"clouddriverId": o.Server, "time": at}
	return map[string]any{"operationId": o.ID, "operationType": o.Type, "account": o.Account, "startTime": at, "endTime": at, "totalDurationMs": 0,
		"finalOutcome": "SUCCESS", "opReceivedByClouddriver": server, "opProcessedByClouddriver": server,
		"opSentToAgent": map[string]any{"agentId": o.Agent, "time": at},
		"resultReceivedFromAgent": map[string]any{"agentId": o.Agent, "clouddriverId": o.Server, "time": at,
			"result": map[string]any{"status": 200, "durationMs": 0}},
		"resultReceivedByClouddriver": server}
}

// pluginOperations answers with a page, the newest operation first.
func pluginOperations(r *http.Request, now snapshot) Answer {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil && n > 0 {
			return n
		}
		return otherwise
	}
	items, page := number("items", 50), number("page", 1)
	views := []any{}
	for _, o := range slices.Backward(now.plugin.Operations) {
		views = append(views, o.view())
	}
	first := min(len(views), (page-1)*items)
	return answerJSON(views[first:min(len(views), first+items)])
}

func pluginOperation(r *http.Request, now snapshot) Answer {
	for _, o := range now.plugin.Operations {
		if o.ID == r.PathValue("id") {
			return answerJSON(o.view())
		}
	}
	return notFound("Operation not found (id: " + r.PathValue("id") + ")")
}

func serverView(id string) map[string]any {
	return map[string]any{"baseUrl": "http://10.0.15.246:7002", "id": id, "lastUpdated": time.Now().UTC().Format(pluginTime), "ready": true}
}

func pluginServers(_ *http.Request, now snapshot) Answer {
	views := []any{}
	for _, id := range now.plugin.Servers {
		views = append(views, serverView(id))
	}
	return answerJSON(views)
}

func pluginServer(r *http.Request, now snapshot) Answer {
	if id := r.PathValue("id"); slices.Contains(now.plugin.Servers, id) {
		return answerJSON(serverView(id))
	}
	return notFound("Clouddriver not found (id: " + r.PathValue("id") + ")")
}

func pluginAccount(r *http.Request, now snapshot) Answer {
	name := r.PathValue("account")
	agents := []any{}
	for _, a := range now.plugin.Agents {
		if slices.Contains(a.Accounts, name) {
			agents = append(agents, map[string]any{"agentId": a.ID, "caching": true})
		}
	}
	if len(agents) == 0 {
		return notFound("Account not found (name: " + name + ")")
	}
	return answerJSON(map[string]any{"name": name, "type": "kubernetes", "source": "static-agent-config", "config": map[string]any{}, "agents": agents,
		"status": "ACTIVE", "lastAssignmentMsg": ""})
}

func pluginNamespaces(r *http.Request, now snapshot) Answer {
	namespaces := []string{}
	for _, o := range now.of(r.PathValue("account")).objects {
		if !slices.Contains(namespaces, o.Metadata.Namespace) {
			namespaces = append(namespaces, o.Metadata.Namespace)
		}
	}
	return answerJSON(namespaces)
}
