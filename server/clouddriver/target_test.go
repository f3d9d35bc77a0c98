package clouddriver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/vedette-io/vedette/server/clouddriver"
	"github.com/vedette-io/vedette/server/readtest"
)

// TestTargetIsChosenAmongServerGroups chooses among server groups of one cluster: v000 is the oldest and largest, v001 and
// v002 were made in the same second and have a Pod less, and v002 is disabled. Namespace "one" has
// only one.
func TestTargetIsChosenAmongServerGroups(t *testing.T) {
	w := readtest.New(t)
	w.Account("prod", viewKinds()...)
	group := func(namespace, name, created, annotations string, pods int) {
		uid := "a0000000-0000-4000-8000-000000000" + name[len(name)-3:]
		w.Put("prod", fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":%q,"namespace":%q,"uid":%q,"creationTimestamp":%q,
			"annotations":{"moniker.spinnaker.io/application":"web","moniker.spinnaker.io/cluster":"replicaSet web"%s}},
			"spec":{"template":{"spec":{"containers":[{"name":"web","image":"r.io/%s"}]}}}}`, name, namespace, uid, created, annotations, name))
		for i := range pods {
			w.Put("prod", fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s-%d","namespace":%q,
				"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":%q,"uid":%q}]}}`, name, i, namespace, name, uid))
		}
	}
	group("shop", "web-v000", "2026-11-20T10:00:00Z", "", 2)
	group("shop", "web-v002", "2026-11-20T11:00:00Z", `,"traffic.spinnaker.io/load-balancers":"[\"service gone\"]"`, 1)
	group("shop", "web-v001", "2026-11-20T11:00:00Z", "", 1)
	group("one", "web-v009", "2026-11-20T10:00:00Z", "", 0)
	url := serve(t, clouddriver.Config{Store: w.Store}) + "/applications/web/clusters/prod/replicaSet%20web/kubernetes/"
	const notFound = "Target not found (target: "
	for _, tt := range []struct{ path, want string }{
		{"shop/serverGroups/target/current", "web-v002"},
		{"shop/serverGroups/target/NEWEST_asg", "web-v002"},
		{"shop/serverGroups/target/newest_ASG_dynamic?onlyEnabled=true", "web-v001"},
		{"shop/serverGroups/target/newest?onlyEnabled=1", "web-v002"},
		{"shop/serverGroups/target/previous", "web-v001"},
		{"shop/serverGroups/target/ancestor_asg_dynamic?onlyEnabled=TRUE", "web-v000"},
		{"shop/serverGroups/target/oldest", "web-v000"},
		{"shop/serverGroups/target/largest", "web-v000"},
		{"shop/serverGroups/target/fail", "More than one target found (scope: shop, serverGroups: replicaSet web-v000, replicaSet web-v001, replicaSet web-v002)"},
		{"one/serverGroups/target/newest", "web-v009"},
		{"one/serverGroups/target/ancestor", notFound + "ancestor)"},
		{"one/serverGroups/target/oldest_asg", notFound + "oldest_asg)"},
		{"one/serverGroups/target/oldest?validateOldest=false", "web-v009"},
		{"one/serverGroups/target/largest", "web-v009"},
		{"one/serverGroups/target/fail", "web-v009"},
		{"none/serverGroups/target/oldest", "No server groups found (account: prod, location: none, cluster: replicaSet web, type: KUBERNETES)"},
		{"shop/serverGroups/target/nonsense", notFound + "nonsense)"},
		{"shop/serverGroups/target/_asg", notFound + "_asg)"},
		{"shop/serverGroups/target/newest/images", `{"summaries":[{"serverGroupName":"web-v002","buildInfo":{"images":["r.io/web-v002"]}}]}`},
		{"one/serverGroups/target/oldest/Images", `{"summaries":[{"serverGroupName":"web-v009","buildInfo":{"images":["r.io/web-v009"]}}]}`},
		{"shop/serverGroups/target/newest/image", ""},
		{"shop/serverGroups/target/newest/nonsense", "Summary not found (type: nonsense)"},
	} {
		response, body := get(t, url+tt.path)
		var answer struct{ DisplayName, Message string }
		got := strings.TrimSpace(string(body))
		if json.Unmarshal(body, &answer) == nil && answer.DisplayName+answer.Message != "" {
			got = answer.DisplayName + answer.Message
		}
		if isError := strings.Contains(tt.want, "found"); got != tt.want || (response.StatusCode == http.StatusNotFound) != isError {
			t.Errorf("%s: got %d %s, want %q", tt.path, response.StatusCode, got, tt.want)
		}
	}
	response, body := get(t, strings.Replace(url, "/kubernetes/", "/aws/", 1)+"shop/serverGroups/target/newest")
	if want := "type: AWS"; response.StatusCode != http.StatusNotFound || !strings.Contains(string(body), want) {
		t.Errorf("another provider: got %d %s, want 404 with %q", response.StatusCode, body, want)
	}
}
