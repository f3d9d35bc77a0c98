package clouddriver

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/rest"
)

// otherProviderAnswer is the answer of an endpoint for resources that Kubernetes does not have. A
// Clouddriver with no other provider gives the same.
type otherProviderAnswer struct {
	pattern web.Pattern
	body    string // the JSON of status 200; empty for status 404
	// notFound is the message of status 404. A name in braces stands for that part of the path.
	notFound string
}

const (
	emptyList = "[]"
	emptyMap  = "{}"
)

// otherProviderAnswers are what Gate, Orca and Igor ask about other providers. Deck asks for some
// of them at start, and shows an error for each that is missing. An entry comes before routes of
// Kubernetes that match the same paths.
var otherProviderAnswers = []otherProviderAnswer{
	{pattern: "networks", body: emptyMap},
	{pattern: "networks/{provider}", body: emptyList},
	{pattern: "subnets", body: emptyList},
	{pattern: "subnets/{provider}", body: emptyList},
	{pattern: "vpcs", body: emptyList},
	{pattern: "instanceTypes", body: emptyList},
	{pattern: "keyPairs", body: emptyList},
	{pattern: "certificates", body: emptyList},
	{pattern: "certificates/{provider}", body: emptyList},
	{pattern: "elasticIps/{account}", body: emptyList},
	{pattern: "elasticIps/{account}/{region}", body: emptyList},
	{pattern: "roles/{provider}", body: emptyList},
	{pattern: "storage", body: emptyList},
	{pattern: "cloudMetrics/{provider}/{account}/{region}", body: emptyList},
	{pattern: "reports/reservation", body: emptyList},
	{pattern: "installedPlugins", body: emptyList},
	{pattern: "ecs/cloudMetrics/alarms", body: emptyList},
	{pattern: "ecs/{resource}", body: emptyList},
	{pattern: "aws/cloudFormation/stacks", body: emptyList},

	{pattern: "functions", body: emptyList},
	{pattern: "applications/{app}/functions", body: emptyList},
	{pattern: "applications/{app}/clusters/{account}/{cluster}/{provider}/serverGroups/{serverGroup}/scalingActivities", body: emptyList},
	{pattern: "applications/{app}/serverGroups/{account}/{serverGroup}/events", body: emptyList},

	{pattern: "{provider}/images/find", body: emptyList},
	{pattern: "{provider}/images/tags", body: emptyList},
	{pattern: "{provider}/images/{account}/{region}/{image}", body: emptyList},
	{pattern: "{provider}/charts/find", body: emptyList},
	{pattern: "images/{provider}/{image}", notFound: "ImageProvider for provider {provider} not found."},

	// A Clouddriver without a store for entity tags fails with a null pointer here.
	{pattern: "tags", body: emptyList},
	{pattern: "tags/{id}", notFound: "No EntityTags found w/ id: {id}"},
	{pattern: "v1/data/static/{id}", notFound: "No data available (id: {id})"},
}

func otherProviderRoutes() []web.Route {
	routes := []web.Route{web.Handle("servicebroker/{account}/services", listBrokeredServices)}
	for _, answer := range otherProviderAnswers {
		routes = append(routes, web.Handle(answer.pattern, answer.handle))
	}
	return routes
}

func (o otherProviderAnswer) handle(w http.ResponseWriter, r *http.Request, p web.Params) error {
	if o.body == "" {
		return vedette.Errorf(vedette.NotFound, "%s", o.message(p))
	}
	return rest.WriteJSON(w, r, json.RawMessage(o.body))
}

// message fills the parts of the path into the message of a 404.
func (o otherProviderAnswer) message(p web.Params) string {
	var pairs []string
	for name, value := range p {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(o.notFound)
}

// listBrokeredServices mirrors ServiceBrokerController.listServices, which requires cloudProvider.
func listBrokeredServices(w http.ResponseWriter, r *http.Request, _ web.Params) error {
	if _, err := web.RequiredParam(r.URL.Query(), "cloudProvider"); err != nil {
		return err
	}
	return rest.WriteJSON(w, r, json.RawMessage(emptyList))
}
