package compare

import (
	"net/url"
	"slices"
	"strings"
)

// templates are the forms of Clouddriver's paths, the first that matches counts. Segments in upper
// case match any text.
var templates = parseTemplates(`
credentials
credentials/type/TYPE
credentials/ACCOUNT
credentials/ACCOUNT/authorized
applications
applications/APP
applications/APP/clusters
applications/APP/clusters/ACCOUNT
applications/APP/clusters/ACCOUNT/CLUSTER
applications/APP/clusters/ACCOUNT/CLUSTER/kubernetes
applications/APP/clusters/ACCOUNT/CLUSTER/PROVIDER
applications/APP/clusters/ACCOUNT/CLUSTER/PROVIDER/serverGroups
applications/APP/clusters/ACCOUNT/CLUSTER/PROVIDER/serverGroups/NAME
applications/APP/clusters/ACCOUNT/CLUSTER/PROVIDER/LOCATION/serverGroups/target/TARGET
applications/APP/clusters/ACCOUNT/CLUSTER/PROVIDER/LOCATION/serverGroups/target/TARGET/SUMMARY
applications/APP/serverGroups
applications/APP/serverGroups/ACCOUNT/LOCATION/NAME
applications/APP/serverGroupManagers
applications/APP/loadBalancers
applications/APP/rawResources
applications/APP/functions
applications/APP/jobs/ACCOUNT/LOCATION/NAME
applications/APP/jobs/ACCOUNT/LOCATION/NAME/FILE
serverGroups
serverGroups/ACCOUNT/LOCATION/NAME
instances/ACCOUNT/LOCATION/NAME
instances/ACCOUNT/LOCATION/NAME/console
kubernetes/loadBalancers
kubernetes/loadBalancers/NAME
kubernetes/loadBalancers/ACCOUNT/LOCATION/NAME
PROVIDER/loadBalancers
PROVIDER/loadBalancers/NAME
PROVIDER/loadBalancers/ACCOUNT/LOCATION/NAME
securityGroups
securityGroups/ACCOUNT
securityGroups/ACCOUNT/PROVIDER
securityGroups/ACCOUNT/PROVIDER/NAME
securityGroups/ACCOUNT/PROVIDER/LOCATION/NAME
manifests/ACCOUNT/NAME
manifests/ACCOUNT/LOCATION/NAME
manifests/ACCOUNT/LOCATION/KIND/cluster/APP/CLUSTER
manifests/ACCOUNT/LOCATION/KIND/cluster/APP/CLUSTER/dynamic/CRITERIA
search
projects/PROJECT/clusters
artifacts/credentials
artifacts/account/ACCOUNT/names
artifacts/account/ACCOUNT/versions
cache/introspection
cache/PROVIDER/TYPE
features/stages
task/ID
networks/PROVIDER
subnets/PROVIDER
images/PROVIDER/NAME
PROVIDER/images/find
elasticIps/ACCOUNT
servicebroker/ACCOUNT/services
v1/data/static/ID
`)

func parseTemplates(text string) [][]string {
	var parsed [][]string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		parsed = append(parsed, strings.Split(strings.TrimSpace(line), "/"))
	}
	return parsed
}

// Form returns the form of a path: its template, and the names of the query's parameters. All
// searches are alike, so q is left out.
func Form(path string) string {
	path, query, _ := strings.Cut(path, "?")
	form := formOfPath(strings.Split(strings.TrimPrefix(path, "/"), "/"))
	values, err := url.ParseQuery(query)
	if err != nil {
		return form + "?…"
	}
	var names []string
	for name := range values {
		if name != "q" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return form
	}
	slices.Sort(names)
	return form + "?" + strings.Join(names, "&")
}

func formOfPath(segments []string) string {
	for _, template := range templates {
		if matchesTemplate(template, segments) {
			return "/" + strings.Join(template, "/")
		}
	}
	if len(segments) == 1 {
		return "/" + segments[0]
	}
	return "/" + segments[0] + strings.Repeat("/…", len(segments)-1)
}

func matchesTemplate(template, segments []string) bool {
	return slices.EqualFunc(template, segments, func(t, s string) bool { return isPlaceholder(t) || t == s })
}

func isPlaceholder(segment string) bool { return segment == strings.ToUpper(segment) }
