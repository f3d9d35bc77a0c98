package web

import (
	"net/http"
	"strings"
)

// scaleAgentPath is a path of the Scale Agent's REST API that this server does not have, with what there is
// instead.
type scaleAgentPath struct {
	method  string // empty for all
	pattern string
	instead string
}

const (
	noDynamicAccounts = "this version has no dynamic accounts, which a later release may bring. Accounts come from the files of agents: add, change or remove " +
		"an entry of kubernetes.accounts there, or import a file by spring.config.import; the agent uses it within 5 seconds"
	noForwarding = "servers forward operations to each other at server.peers.port, and over REST only with server.peers.restOperations: true. Submit " +
		"operations with POST /vedette/v1/operations, and read their history with GET /armory/agent/operations or GET /vedette/v1/operations"
	noQueue = "operations do not wait in the database. Submit operations with POST /vedette/v1/operations"
)

// servedScaleAgentPaths are those that this server has. An upstream Clouddriver that does not have what is asked for says so itself.
var servedScaleAgentPaths = []Pattern{"armory/accounts", "armory/accounts/{name}", "agents/kubernetes/accounts/{name}",
	"agents/kubernetes/accounts/{name}/namespaces", "armory/agents", "armory/agents/{id}", "armory/clouddrivers", "armory/clouddrivers/{id}",
	"armory/agent/operations", "armory/agent/operations/{id}"}

// scaleAgentPaths are in the order in which they are compared.
var scaleAgentPaths = []scaleAgentPath{
	{"", "armory/accounts", noDynamicAccounts},
	{"", "armory/accounts/dynamic", noDynamicAccounts},
	{"", "armory/accounts/{name}", noDynamicAccounts},
	{"", "armory/agent/{id}/disconnect", "an agent connects again if its process is restarted; the server moves accounts between agents by itself"},
	{"", "armory/agent/assignments", "the server assigns an account that no agent reports to another agent at once, without being asked"},
	{"", "armory/agent/operations", noForwarding},
	{"", "armory/agent/operations/database", noQueue},
	{"", "armory/agent/operationresults", noForwarding},
	{"", "armory/clouddrivers/sql/pool/settings", "the server chooses the number of its connections; the metrics of prometheus.enabled show how long transactions take"},
}

// ScaleAgentHint returns what a caller of the Scale Agent's REST API can use instead of a path that this server
// does not have, or "" for other paths. The path is escaped.
func ScaleAgentHint(method, path string) string {
	if instead := insteadOf(method, path); instead != "" {
		return instead
	}
	for _, p := range servedScaleAgentPaths {
		if _, matches := MatchPath(p.Path(), strings.Trim(path, "/")); matches && p.Accepts(method) {
			return ""
		}
	}
	path = strings.Trim(path, "/") + "/"
	if strings.HasPrefix(path, "armory/") || strings.HasPrefix(path, "agents/kubernetes/") {
		return "this server has no such path. GET /vedette/v1/openapi.yaml describes its own API"
	}
	return ""
}

// insteadOf returns what there is instead of a path that the Scale Agent had, or "".
func insteadOf(method, path string) string {
	path = strings.Trim(path, "/")
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, p := range scaleAgentPaths {
		if _, matches := MatchPath(p.pattern, path); matches && (p.method == "" || p.method == method) {
			return p.instead
		}
	}
	return ""
}

// WriteNoHandler answers a request for a path that this server does not have. The hint may be empty.
func WriteNoHandler(w http.ResponseWriter, r *http.Request, hint string) {
	message := "No handler found for " + r.Method + " " + r.URL.EscapedPath()
	if hint != "" {
		message += ": " + hint
	}
	writeError(w, &Error{Status: http.StatusNotFound, Exception: NotFoundException, Message: message})
}
