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
	noForwarding = "one server runs per database, so that servers do not forward operations to each other. Submit operations with POST /vedette/v1/operations, " +
		"and read their history with GET /armory/agent/operations or GET /vedette/v1/operations"
)

// scaleAgentPaths are in the order in which they are compared.
var scaleAgentPaths = []scaleAgentPath{
	{"GET", "armory/accounts", "use GET /vedette/v1/accounts, or the command vedette accounts"},
	{"GET", "armory/accounts/{name}", "use GET /vedette/v1/accounts/{name}, or the command vedette accounts"},
	{"", "armory/accounts", noDynamicAccounts},
	{"", "armory/accounts/dynamic", noDynamicAccounts},
	{"", "armory/accounts/{name}", noDynamicAccounts},
	{"", "agents/kubernetes/accounts/{name}", "use GET /vedette/v1/accounts/{name}, or the command vedette accounts"},
	{"", "agents/kubernetes/accounts/{name}/namespaces", "use GET /vedette/v1/objects?account={name}&kind=namespace, or the command vedette get namespaces"},
	{"", "armory/agents", "use GET /vedette/v1/agents, or the command vedette agents"},
	{"", "armory/agents/{id}", "use GET /vedette/v1/agents, or the command vedette agents"},
	{"", "armory/agent/{id}/disconnect", "an agent connects again if its process is restarted; the server moves accounts between agents by itself"},
	{"", "armory/agent/assignments", "the server assigns an account that no agent reports to another agent at once, without being asked"},
	{"", "armory/agent/operations", noForwarding},
	{"", "armory/agent/operations/database", noForwarding},
	{"", "armory/agent/operationresults", noForwarding},
	{"", "armory/clouddrivers/sql/pool/settings", "the server chooses the number of its connections; the metrics of prometheus.enabled show how long transactions take"},
}

// ScaleAgentHint returns what a caller of the Scale Agent's REST API can use instead of a path that this server
// does not have, or "" for other paths. The path is escaped.
func ScaleAgentHint(method, path string) string {
	if instead := insteadOf(method, path); instead != "" {
		return instead
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
