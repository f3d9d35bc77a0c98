package main

// A manifest is a file of objects that kubectl applies as it is.
type manifest struct {
	file      string
	namespace string
	values    map[string]any
}

// What a user has to replace in manifests of agents, because it differs in each cluster.
const (
	exampleAccount = "my-cluster"
	exampleServer  = "vedette.example.com:9091"
)

var manifests = []manifest{
	{"install.yaml", "spinnaker", values("server.tls.mode", "secret", "agent.account.name", exampleAccount)},
	{"server.yaml", "spinnaker", values("server.tls.mode", "secret", "agent.enabled", false)},
	{"server-front.yaml", "spinnaker", values("server.tls.mode", "secret", "agent.enabled", false, "server.clouddriver.mode", "front")},
	{"agent.yaml", "vedette", values("server.enabled", false, "agent.account.name", exampleAccount,
		"agent.server.address", exampleServer, "agent.server.tlsSecret", "spin-armory-agent-tls")},
}
