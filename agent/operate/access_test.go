//go:build linux

package operate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestAccessIsAnsweredAsByKubectl asks a real API server what the agent may do, and compares with kubectl.
func TestAccessIsAnsweredAsByKubectl(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	ask := func(a vedette.AccessArgs) (r vedette.AccessResult) {
		must(t, json.Unmarshal(b.mustExecute(a).Result, &r))
		return r
	}
	for _, tt := range []struct {
		args    vedette.AccessArgs
		warning string
	}{
		{vedette.AccessArgs{Target: b.target("deploy", ""), Action: "create"}, ""},
		{vedette.AccessArgs{Target: b.target("pods", "web"), Action: "get", Subresource: "log"}, ""},
		{vedette.AccessArgs{Target: vedette.Target{Kind: "pods"}, Action: "list", AllNamespaces: true}, ""},
		{vedette.AccessArgs{Target: vedette.Target{Kind: "nodes"}, Action: "get"}, "resource 'nodes' is not namespace scoped"},
		{vedette.AccessArgs{Target: b.target("pots", ""), Action: "get"}, "the server doesn't have a resource type 'pots'"},
		{vedette.AccessArgs{Target: vedette.Target{Kind: "*"}, Action: "*"}, ""},
		{vedette.AccessArgs{Action: "get", Path: "/metrics"}, ""},
	} {
		r := ask(tt.args)
		if !r.Allowed || strings.Join(r.Warnings, "; ") != tt.warning {
			t.Errorf("%+v: got %+v, want yes as kubectl with the warning %q", tt.args, r, tt.warning)
		}
	}
	rules := ask(vedette.AccessArgs{List: true}).Rules
	if !slices.ContainsFunc(rules, func(r vedette.AccessRule) bool {
		return slices.Contains(r.Resources, "selfsubjectaccessreviews") || slices.Contains(r.Resources, "*")
	}) {
		t.Errorf("got %+v, want the rules of the agent", rules)
	}
}

// TestAccessIsRefused asks as a user without rights.
func TestAccessIsRefused(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	kubeconfig, err := plane.UserKubeconfig("stranger")
	must(t, err)
	c, err := kube.Connect(kube.Access{KubeconfigFile: kubeconfig}, kube.Options{})
	must(t, err)
	defer c.Close()
	b.op, err = operate.New(c, operate.Config{})
	must(t, err)
	for _, args := range []vedette.AccessArgs{
		{Target: b.target("deploy", ""), Action: "create"}, {Target: vedette.Target{Kind: "*"}, Action: "*"}, {Action: "get", Path: "/metrics"},
	} {
		var r vedette.AccessResult
		must(t, json.Unmarshal(b.mustExecute(args).Result, &r))
		if r.Allowed {
			t.Errorf("%+v: got yes", args)
		}
	}
}
