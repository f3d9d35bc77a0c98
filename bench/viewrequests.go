package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/vedette-io/vedette/bench/dataset"
)

// viewRequest is a request of Spinnaker's services to Clouddriver.
type viewRequest struct {
	name     string // as in the table
	path     string
	p50, p99 float64 // targets in milliseconds; 0 for none
	// changes tells that the answer depends on applications, so that it is measured after
	// changes, too.
	changes bool
}

// applicationNames are the names of one workload of an application, as callers know them from
// lists.
type applicationNames struct {
	application, account, namespace, deployment, replicaSet, pod string
}

// findNames looks up the names in Vedette's own API, which has them even if a view does not exist.
func (s *server) findNames(ctx context.Context, application string) (applicationNames, error) {
	names := applicationNames{application: application, account: string(dataset.AccountName(0))}
	for kind, field := range map[string]*string{"deployments": &names.deployment, "replicasets": &names.replicaSet, "pods": &names.pod} {
		var page struct {
			Items []struct{ Namespace, Name string }
		}
		err := s.get(ctx, "/vedette/v1/objects", url.Values{"account": {names.account}, "application": {application}, "kind": {kind}, "limit": {"1"}}, &page)
		if err != nil {
			return names, err
		}
		if len(page.Items) == 0 {
			return names, fmt.Errorf("account %s has no %s of application %s", names.account, kind, application)
		}
		names.namespace, *field = page.Items[0].Namespace, page.Items[0].Name
	}
	return names, nil
}

// requests returns every request about an application, with the targets for its size.
func (n applicationNames) requests(p50, p99 float64) []viewRequest {
	return n.changing(p50, p99,
		"/applications/{app}",
		"/applications/{app}/clusters",
		"/applications/{app}/clusters/{account}",
		"/applications/{app}/clusters/{account}/{cluster}",
		"/applications/{app}/clusters/{account}/{cluster}/kubernetes",
		"/applications/{app}/clusters/{account}/{cluster}/kubernetes/serverGroups/{serverGroup}",
		"/applications/{app}/serverGroups",
		"/applications/{app}/serverGroups?expand=true",
		"/applications/{app}/serverGroups/{account}/{namespace}/{serverGroup}",
		"/serverGroups?applications={app}",
		"/serverGroups/{account}/{namespace}/{serverGroup}",
		"/applications/{app}/serverGroupManagers",
		"/applications/{app}/loadBalancers",
		"/applications/{app}/rawResources",
		"/instances/{account}/{namespace}/{instance}",
		"/manifests/{account}/{namespace}/{manager}?includeEvents=false", // events are read from the cluster
		"/manifests/{account}/{namespace}/replicaSet/cluster/{app}/{cluster}",
		"/manifests/{account}/{namespace}/replicaSet/cluster/{app}/{cluster}/dynamic/newest")
}

// searches returns searches for an application in the whole fleet, some of them without results.
func (n applicationNames) searches(p50, p99 float64) []viewRequest {
	return n.changing(p50, p99,
		"/search?q={app}&type=applications",
		"/search?q={app}&type=clusters",
		"/search?q={app}&type=serverGroups&pageSize=500",
		"/search?q={app}&type=instances&pageSize=500",
		"/search?q={app}&type=loadBalancers&pageSize=500",
		"/search?q=no-{app}-is-here&type=serverGroups,instances&pageSize=500")
}

// changing returns requests whose answers depend on the application.
func (n applicationNames) changing(p50, p99 float64, paths ...string) []viewRequest {
	var all []viewRequest
	for _, path := range paths {
		name := strings.ReplaceAll(path, "{app}", n.application)
		if name == path {
			name += " of " + n.application
		}
		all = append(all, viewRequest{name: name, path: n.fill(path), p50: p50, p99: p99, changes: true})
	}
	return all
}

func (n applicationNames) fill(path string) string {
	return strings.NewReplacer("{app}", n.application, "{account}", n.account, "{namespace}", n.namespace,
		"{cluster}", url.PathEscape("deployment "+n.deployment), "{manager}", url.PathEscape("deployment "+n.deployment),
		"{serverGroup}", url.PathEscape("replicaSet "+n.replicaSet), "{instance}", url.PathEscape("pod "+n.pod)).Replace(path)
}

// fleetRequests returns the requests about all accounts and applications.
func fleetRequests(p50, p99 float64) []viewRequest {
	account := string(dataset.AccountName(0))
	var all []viewRequest
	for _, path := range []string{"/applications?restricted=false&expand=true", "/applications?restricted=false&expand=false",
		"/applications?expand=true", "/credentials", "/credentials?expand=true", "/credentials/" + account, "/securityGroups",
		"/securityGroups/" + account + "/kubernetes", "/kubernetes/loadBalancers", "/vedette/v1/objects?limit=1", "/vedette/v1/accounts?limit=1",
		"/vedette/v1/feeds?limit=1"} {
		all = append(all, viewRequest{name: path, path: path, p50: p50, p99: p99, changes: strings.HasPrefix(path, "/applications")})
	}
	return all
}
