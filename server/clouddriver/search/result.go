package search

import (
	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// searchView is one page of results. Clouddriver answers a list of one.
type searchView struct {
	TotalMatches int    `json:"totalMatches"` // of this page
	PageNumber   int    `json:"pageNumber"`
	PageSize     int    `json:"pageSize"`
	Platform     string `json:"platform"`
	Query        string `json:"query"`
	Results      []any  `json:"results"`
}

type objectResult struct {
	Provider       string              `json:"provider"`
	Group          string              `json:"group"`
	KubernetesKind string              `json:"kubernetesKind"`
	Account        vedette.AccountName `json:"account"`
	Namespace      string              `json:"namespace"`
	Region         string              `json:"region"`
	Name           string              `json:"name"`
	Type           string              `json:"type"`

	// At most one of them is the name once more, as Deck reads it from results of each type.
	ServerGroup  string `json:"serverGroup,omitempty"`
	LoadBalancer string `json:"loadBalancer,omitempty"`
	InstanceID   string `json:"instanceId,omitempty"`
	ID           string `json:"id,omitempty"`

	// Application and Cluster are set if the object was found by them.
	Application string `json:"application,omitempty"`
	Cluster     string `json:"cluster,omitempty"`
}

// logicalResult is an application or a cluster that was found. The account is that of a cluster.
type logicalResult struct {
	Provider    string              `json:"provider"`
	Group       string              `json:"group"`
	LogicalKind string              `json:"logicalKind"`
	Account     vedette.AccountName `json:"account,omitempty"`
	Name        string              `json:"name"`
	Type        string              `json:"type"`
	Application string              `json:"application"`
	Cluster     string              `json:"cluster,omitempty"`
}

var spinnakerKinds = manifest.SpinnakerKinds()

func newObjectResult(account vedette.AccountName, key vedette.Key) objectResult {
	kind := manifest.KindName(key.Kind)
	name := kind + " " + key.Name
	r := objectResult{Provider: "kubernetes", Group: kind, KubernetesKind: kind, Account: account, Namespace: key.Namespace,
		Region: key.Namespace, Name: name, Type: spinnakerKinds[kind]}
	switch kind {
	case "replicaSet", "daemonSet", "statefulSet":
		r.ServerGroup = name
	case "service", "ingress":
		r.LoadBalancer = name
	case "pod":
		r.InstanceID = name
	case "networkPolicy":
		r.ID = name
	}
	return r
}

func newApplicationResult(name string) logicalResult {
	return logicalResult{Provider: "kubernetes", Group: applicationType, LogicalKind: "APPLICATIONS", Name: name, Type: applicationType,
		Application: name}
}

func newClusterResult(account vedette.AccountName, application, cluster string) logicalResult {
	return logicalResult{Provider: "kubernetes", Group: clusterType, LogicalKind: "CLUSTERS", Account: account, Name: cluster,
		Type: clusterType, Application: application, Cluster: cluster}
}
