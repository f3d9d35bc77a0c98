package upstream

import "github.com/vedette-io/vedette/server/upstream/merging"

// The path parameters that decide.
const (
	accountParam  = "account"
	providerParam = "provider"
	taskParam     = "id"
	idParam       = "id"
	nameParam     = "name"
	appParam      = "app"
)

// projectPattern is the endpoint that needs Front50.
const projectPattern = "projects/{project}/clusters"

// Table returns all endpoints of Clouddriver, in the order in which they are matched. The rest is
// passed on.
func Table() []Endpoint {
	var all []Endpoint
	for _, part := range [][]Endpoint{ownEndpoints(), scaleAgentEndpoints(), operationEndpoints(), accountEndpoints(),
		applicationEndpoints(), objectEndpoints(), artifactEndpoints(), otherEndpoints()} {
		all = append(all, part...)
	}
	return all
}

func ownEndpoints() []Endpoint {
	return []Endpoint{
		{Pattern: "health", Mode: Local, Note: "The component `upstream` shows the other Clouddriver. Its state does not change the status."},
	}
}

// scaleAgentEndpoints are those of the predecessor's plugin, which the other Clouddriver may have.
func scaleAgentEndpoints() []Endpoint {
	const (
		missing  = "A Clouddriver without the predecessor's plugin has none."
		internal = "Never passed on: the plugin believes whoever reaches it."
		plugin   = "The predecessor's plugin, if there is one, migrates accounts to its own agents."
	)
	return []Endpoint{
		{Pattern: "armory/agents", Mode: Merged, Policy: Partial, isOfPlugin: true, stream: &streamRule{}, Note: missing},
		{Pattern: "armory/agents/{id}", Mode: ByID, isOfPlugin: true},
		{Pattern: "armory/clouddrivers", Mode: Merged, Policy: Partial, isOfPlugin: true, merge: merging.Servers,
			Note: missing + " A server that both list appears once."},
		{Pattern: "armory/clouddrivers/{id}", Mode: ByID, isOfPlugin: true},
		{Pattern: "armory/agent/operations", Mode: Merged, Policy: Partial, isOfPlugin: true, stream: &streamRule{newestFirst: "startTime"},
			Note: missing + " A page has up to `items` operations of each side."},
		{Pattern: "armory/agent/operations/{id}", Mode: ByID, isOfPlugin: true},
		{Pattern: "POST armory/agent/operations", Mode: Local, Note: internal},
		{Pattern: "POST armory/agent/operationresults", Mode: Local, Note: internal},
		{Pattern: "POST armory/agent/operations/database", Mode: PassedOn},
		{Pattern: "POST armory/agent/assignments", Mode: PassedOn, Note: "This server assigns accounts by itself."},
		{Pattern: "POST armory/agent/{id}/disconnect", Mode: ByID, isOfPlugin: true, ownerPath: "armory/agents/"},
		{Pattern: "armory/accounts", Mode: Merged, Policy: Complete, isOfPlugin: true, merge: merging.AccountPage,
			Note: missing + " A page has up to `limit` accounts of each side; `total` counts an account twice that both have."},
		{Pattern: "POST armory/accounts", Mode: PassedOn, Note: plugin},
		{Pattern: "PATCH armory/accounts", Mode: PassedOn, Note: plugin},
		{Pattern: "DELETE armory/accounts", Mode: PassedOn, Note: plugin},
		{Pattern: "POST armory/accounts/dynamic", Mode: PassedOn, Note: plugin},
		{Pattern: "PUT armory/accounts/dynamic", Mode: PassedOn, Note: plugin},
		{Pattern: "PATCH armory/accounts/dynamic", Mode: PassedOn, Note: plugin},
		{Pattern: "armory/accounts/{account}", Mode: ByAccount, isOfPlugin: true},
		{Pattern: "DELETE armory/accounts/{account}", Mode: ByAccount, isOfPlugin: true},
		{Pattern: "agents/kubernetes/accounts/{account}", Mode: ByAccount, isOfPlugin: true},
		{Pattern: "agents/kubernetes/accounts/{account}/namespaces", Mode: ByAccount, isOfPlugin: true},
	}
}

func operationEndpoints() []Endpoint {
	const split = "One task tells about both if a request mixes accounts."
	return []Endpoint{
		{Pattern: "POST ops", Mode: ByOperations, Note: split},
		{Pattern: "POST ops/{name}", Mode: ByOperations},
		{Pattern: "POST {provider}/ops", Mode: ByOperations, Note: split + " Providers other than `kubernetes` are passed on."},
		{Pattern: "POST {provider}/ops/{name}", Mode: ByOperations, Note: "Providers other than `kubernetes` are passed on."},
		{Pattern: "task", Mode: Merged, Policy: Complete, stream: &streamRule{}},
		{Pattern: "POST task/{id}:resume", Mode: ByTask},
		{Pattern: "task/{id}", Mode: ByTask},
		{Pattern: "{provider}/task/{id}/owner", Mode: ByTask},
		{Pattern: "PATCH {provider}/task/{id}", Mode: ByTask},
		{Pattern: "POST {provider}/task/{id}/restart", Mode: ByTask},
		{Pattern: "features/stages", Mode: Merged, Policy: LastAnswer, merge: merging.Stages},
		{Pattern: "POST cache/{provider}/{type}", Mode: ByBody, Note: "Providers other than `kubernetes` are passed on."},
		{Pattern: "cache/introspection", Mode: PassedOn},
		{Pattern: "cache/{provider}/{type}", Mode: ByProvider, Policy: Complete, stream: &streamRule{}},
	}
}

func accountEndpoints() []Endpoint {
	const stored = "Accounts of agents cannot be changed through Spinnaker."
	return []Endpoint{
		{Pattern: "credentials", Mode: Merged, Policy: LastAnswer, stream: &streamRule{account: accountNameKey}},
		{Pattern: "POST credentials", Mode: PassedOn, Note: stored},
		{Pattern: "PUT credentials", Mode: PassedOn, Note: stored},
		{Pattern: "PUT credentials/{account}", Mode: PassedOn, Note: stored},
		{Pattern: "DELETE credentials/{account}", Mode: PassedOn, Note: stored},
		{Pattern: "credentials/type/{type}", Mode: Merged, Policy: Complete, subject: objects, isMissingThere: true,
			stream: &streamRule{account: accountNameKey, sortByName: true},
			Note:   "A page has up to `limit` accounts of each side."},
		{Pattern: "credentials/{account}", Mode: ByAccount},
		{Pattern: "credentials/{account}/authorized", Mode: ByAccount},
		{Pattern: "credentials/{account}/history", Mode: PassedOn},
	}
}

func applicationEndpoints() []Endpoint {
	return []Endpoint{
		{Pattern: "applications", Mode: Merged, Policy: LastAnswer, merge: merging.Applications,
			Note: "An application that both know appears once. Without `restricted=false` the answer depends on the user, and is complete or 503."},
		{Pattern: "applications/{app}", Mode: Merged, Policy: Complete, subject: oneApplication, isMissingThere: true,
			merge: merging.Application},
		{Pattern: "applications/{app}/clusters", Mode: Merged, Policy: Complete, subject: oneApplication,
			stream: &streamRule{byAccount: true}},
		{Pattern: "applications/{app}/clusters/{account}", Mode: ByAccount},
		{Pattern: "applications/{app}/clusters/{account}/{cluster}", Mode: ByAccount},
		{Pattern: "applications/{app}/clusters/{account}/{cluster}/{type}", Mode: ByAccount},
		{Pattern: "applications/{app}/clusters/{account}/{cluster}/{type}/serverGroups", Mode: ByAccount},
		{Pattern: "applications/{app}/clusters/{account}/{cluster}/{type}/serverGroups/{serverGroup}", Mode: ByAccount},
		{Pattern: "applications/{app}/clusters/{account}/{cluster}/{type}/{scope}/serverGroups/target/{target}", Mode: ByAccount},
		{Pattern: "applications/{app}/clusters/{account}/{cluster}/{type}/{scope}/serverGroups/target/{target}/{summary}", Mode: ByAccount},
		{Pattern: "applications/{app}/serverGroups", Mode: Merged, Policy: Complete, subject: oneApplication,
			stream: &streamRule{account: merging.AccountKey}},
		{Pattern: "applications/{app}/serverGroups/{account}/{region}/{serverGroup}", Mode: ByAccount},
		{Pattern: "applications/{app}/serverGroups/{account}/{serverGroup}/events", Mode: ByAccount},
		{Pattern: "applications/{app}/clusters/{account}/{cluster}/{type}/serverGroups/{serverGroup}/scalingActivities", Mode: ByAccount},
		{Pattern: "applications/{app}/serverGroupManagers", Mode: Merged, Policy: Complete, subject: oneApplication,
			stream: &streamRule{account: merging.AccountKey}},
		{Pattern: "applications/{app}/loadBalancers", Mode: Merged, Policy: Complete, subject: oneObjectList,
			stream: &streamRule{account: merging.AccountKey, sortByName: true}},
		{Pattern: "applications/{app}/rawResources", Mode: Merged, Policy: Complete, subject: oneObjectList,
			stream: &streamRule{account: merging.AccountKey}},
		{Pattern: "applications/{app}/jobs/{account}/{location}/{id}", Mode: ByAccount},
		{Pattern: "POST applications/{app}/jobs/{account}/{location}/{id}", Mode: ByAccount},
		{Pattern: "DELETE applications/{app}/jobs/{account}/{location}/{id}", Mode: ByAccount},
		{Pattern: "applications/{app}/jobs/{account}/{location}/{id}/{container}", Mode: ByAccount},
		{Pattern: "applications/{app}/kubernetes/pods/{account}/{location}/{pod}/{container}", Mode: ByAccount},
		{Pattern: projectPattern, Mode: Merged, Policy: Partial, isMissingThere: true, merge: merging.Project,
			Note: "Passed on if `services.front50` is not set: without it the clusters of agents are missing."},
	}
}

func objectEndpoints() []Endpoint {
	const provider = "Providers other than `kubernetes` are passed on."
	return []Endpoint{
		{Pattern: "manifests/{account}/{name}", Mode: ByAccount},
		{Pattern: "manifests/{account}/{location}/{name}", Mode: ByAccount},
		{Pattern: "manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}", Mode: ByAccount},
		{Pattern: "manifests/{account}/{location}/{kind}/cluster/{app}/{cluster}/dynamic/{criteria}", Mode: ByAccount},
		{Pattern: "serverGroups", Mode: Merged, Policy: Complete, subject: serverGroups, stream: &streamRule{account: merging.AccountKey}},
		{Pattern: "serverGroups/{account}/{region}/{serverGroup}", Mode: ByAccount},
		{Pattern: "instances/{account}/{location}/{id}", Mode: ByAccount},
		{Pattern: "instances/{account}/{location}/{id}/console", Mode: ByAccount},
		{Pattern: "securityGroups", Mode: Merged, Policy: Complete, subject: objects, stream: &streamRule{byAccount: true}},
		{Pattern: "securityGroups/{account}", Mode: ByAccount},
		{Pattern: "securityGroups/{account}/{type}", Mode: ByAccount},
		{Pattern: "securityGroups/{account}/{type}/{region}", Mode: ByAccount},
		{Pattern: "securityGroups/{account}/{type}/{region}/{name}", Mode: ByAccount},
		{Pattern: "{provider}/loadBalancers", Mode: ByProvider, Policy: Complete, subject: objects,
			stream: &streamRule{account: merging.AccountKey}, Note: provider},
		{Pattern: "{provider}/loadBalancers/{name}", Mode: PassedOn},
		{Pattern: "{provider}/loadBalancers/{account}/{region}/{name}", Mode: ByAccount},
		{Pattern: "{provider}/images/{account}/{region}/{image}", Mode: ByAccount},
		{Pattern: "elasticIps/{account}", Mode: ByAccount},
		{Pattern: "elasticIps/{account}/{region}", Mode: ByAccount},
		{Pattern: "servicebroker/{account}/services", Mode: ByAccount},
		{Pattern: "cloudMetrics/{provider}/{account}/{region}", Mode: ByAccount},
		{Pattern: "search", Mode: Merged, Policy: Partial, merge: merging.Search, Note: "A page has up to `pageSize` results of each side."},
	}
}

func artifactEndpoints() []Endpoint {
	return []Endpoint{
		{Pattern: "artifacts/credentials", Mode: Merged, Policy: LastAnswer, merge: merging.ArtifactAccounts,
			Note: "Of an account that both know, this server serves the types that it supports."},
		{Pattern: "PUT artifacts/fetch", Mode: ByArtifact},
		{Pattern: "artifacts/account/{name}/names", Mode: ByArtifact},
		{Pattern: "artifacts/account/{name}/versions", Mode: ByArtifact},
		{Pattern: "artifacts/content-address/{app}/{hash}", Mode: PassedOn, Note: "The artifact store is the other Clouddriver's."},
	}
}

// otherEndpoints are passed on like everything that is not in the table. They are listed for the
// documentation.
func otherEndpoints() []Endpoint {
	const admin = "It empties the other Clouddriver's cache; this server has none."
	return []Endpoint{
		{Pattern: "PUT admin/db/truncate/{namespace}", Mode: PassedOn, Note: admin},
		{Pattern: "PUT admin/db/drop/{namespace}", Mode: PassedOn, Note: admin},
		{Pattern: "PUT admin/db/drop_version/{namespace}", Mode: PassedOn, Note: admin},
		{Pattern: "{provider}/images/find", Mode: PassedOn},
		{Pattern: "{provider}/images/tags", Mode: PassedOn},
		{Pattern: "tags", Mode: PassedOn},
		{Pattern: "subnets", Mode: PassedOn},
		{Pattern: "networks", Mode: PassedOn},
		{Pattern: "keyPairs", Mode: PassedOn},
		{Pattern: "instanceTypes", Mode: PassedOn},
		{Pattern: "networks/{provider}", Mode: PassedOn},
		{Pattern: "subnets/{provider}", Mode: PassedOn},
		{Pattern: "vpcs", Mode: PassedOn},
		{Pattern: "certificates/{provider}", Mode: PassedOn},
		{Pattern: "roles/{provider}", Mode: PassedOn},
		{Pattern: "storage", Mode: PassedOn},
		{Pattern: "reports/reservation", Mode: PassedOn},
		{Pattern: "ecs/cloudMetrics/alarms", Mode: PassedOn},
		{Pattern: "ecs/{resource}", Mode: PassedOn},
		{Pattern: "aws/cloudFormation/stacks", Mode: PassedOn},
		{Pattern: "applications/{app}/functions", Mode: PassedOn},
		{Pattern: "{provider}/charts/find", Mode: PassedOn},
		{Pattern: "images/{provider}/{image}", Mode: PassedOn},
		{Pattern: "tags/{id}", Mode: PassedOn},
		{Pattern: "v1/data/static/{id}", Mode: PassedOn},
		{Pattern: "certificates", Mode: PassedOn},
		{Pattern: "functions", Mode: PassedOn},
		{Pattern: "installedPlugins", Mode: PassedOn},
	}
}
