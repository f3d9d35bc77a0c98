//go:build linux

package operate_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestBuiltInKindMergeMatchesKubectl applies two manifests of each kind in turn, by the agent and by
// kubectl, and compares the objects.
func TestBuiltInKindMergeMatchesKubectl(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	port := func(name string, n int) object { return object{"name": name, "port": n, "targetPort": n} }
	rule := func(host string) object {
		return object{"host": host, "http": object{"paths": []any{object{"path": "/", "pathType": "Prefix",
			"backend": object{"service": object{"name": "s", "port": object{"number": 80}}}}}}}
	}
	job := func(image string, args ...any) object {
		return object{"template": object{"spec": object{"restartPolicy": "Never", "containers": []any{object{"name": "c", "image": image, "args": args}}}}}
	}
	for _, tt := range []struct {
		apiVersion, kind, path string
		first, second          object
	}{
		{"v1", "Service", core + "|services",
			object{"spec": object{"ports": []any{port("a", 80), port("b", 81)}, "selector": object{"x": "1", "y": "2"}, "sessionAffinity": "ClientIP"}},
			object{"spec": object{"ports": []any{port("b", 82)}, "selector": object{"x": "1"}}}},
		{"v1", "ConfigMap", core + "|configmaps", object{"data": object{"a": "1", "b": "2"}}, object{"data": object{"b": "3"}}},
		{"v1", "ServiceAccount", core + "|serviceaccounts", object{"imagePullSecrets": []any{object{"name": "a"}, object{"name": "b"}}}, object{"imagePullSecrets": []any{object{"name": "b"}}}},
		{"networking.k8s.io/v1", "Ingress", "/apis/networking.k8s.io/v1|ingresses",
			object{"spec": object{"rules": []any{rule("a.example.com"), rule("b.example.com")}}}, object{"spec": object{"rules": []any{rule("b.example.com")}}}},
		{"networking.k8s.io/v1", "NetworkPolicy", "/apis/networking.k8s.io/v1|networkpolicies",
			object{"spec": object{"podSelector": object{"matchLabels": object{"a": "1"}}, "ingress": []any{object{}}, "policyTypes": []any{"Ingress", "Egress"}}},
			object{"spec": object{"podSelector": object{}, "policyTypes": []any{"Ingress"}}}},
		{"rbac.authorization.k8s.io/v1", "Role", "/apis/rbac.authorization.k8s.io/v1|roles",
			object{"rules": []any{object{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get", "list"}}}},
			object{"rules": []any{object{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}}},
		{"batch/v1", "CronJob", "/apis/batch/v1|cronjobs",
			object{"spec": object{"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": object{"spec": job("example.com/a", "x", "y")}}},
			object{"spec": object{"schedule": "0 0 1 2 *", "jobTemplate": object{"spec": job("example.com/a", "y")}}}},
		{"autoscaling/v1", "HorizontalPodAutoscaler", "/apis/autoscaling/v1|horizontalpodautoscalers",
			object{"spec": object{"scaleTargetRef": object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "minReplicas": 2, "maxReplicas": 4}},
			object{"spec": object{"scaleTargetRef": object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 5}}},
		{"policy/v1", "PodDisruptionBudget", "/apis/policy/v1|poddisruptionbudgets",
			object{"spec": object{"minAvailable": 1, "selector": object{"matchLabels": object{"a": "1"}}}},
			object{"spec": object{"maxUnavailable": 1, "selector": object{"matchLabels": object{"a": "1"}}}}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			b.TB = t
			var names = [2]string{"ours", "theirs"}
			for i, body := range []object{tt.first, tt.second} {
				var manifests [2]object
				for n, name := range names {
					manifests[n] = object{"apiVersion": tt.apiVersion, "kind": tt.kind, "metadata": object{"name": name,
						"labels": []object{{"kept": "1", "dropped": "1"}, {"kept": "2"}}[i], "annotations": []object{{"dropped": "1"}, nil}[i]}}
					for member, value := range body {
						manifests[n][member] = value
					}
				}
				b.apply(vedette.StrategyClientSide, manifests[0])
				b.kubectlApply(manifests[1:])
			}
			ours, theirs := b.getNormalized(tt.path, "ours"), b.getNormalized(tt.path, "theirs")
			if ours != theirs {
				t.Errorf("the agent left\n%s\nkubectl left\n%s", ours, theirs)
			}
		})
	}
}

// getNormalized returns an object without the fields that differ between any two.
func (b *testbed) getNormalized(path, name string) string {
	b.Helper()
	group, plural, _ := strings.Cut(path, "|")
	o := b.live(group, plural, name)
	meta := o["metadata"].(object)
	annotations, _ := meta["annotations"].(object)
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	o["metadata"] = object{"labels": meta["labels"], "annotations": annotations}
	delete(o, "status")
	if spec, is := o["spec"].(object); is {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	return string(encode(b, o))
}

// TestAmbiguousKindName checks that of a kind that two groups serve the first one is read, as kubectl does, and that a change
// must name the group, unless one of them is Kubernetes' own.
func TestAmbiguousKindName(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	one, two := "one."+b.customGroup(), "two."+b.customGroup()
	b.createCustomKindVersion(one, "v1", "Twin", "twins", nil)
	b.createCustomKindVersion(two, "v1", "Twin", "twins", nil)
	b.createCustomKindVersion(one, "v1", "Job", "jobs", nil)
	for _, group := range []string{one, two} {
		b.apply(vedette.StrategyDefault, object{"apiVersion": group + "/v1", "kind": "Twin", "metadata": object{"name": "a"}, "of": group})
		must(t, plane.Await(t.Context(), "/apis", func(object) bool {
			return b.execute(vedette.GetArgs{Target: b.target("twin."+group, "a")}).State == vedette.Done
		}))
		got := decode(t, b.mustExecute(vedette.GetArgs{Target: b.target("Twin."+group, "a")}).Objects[0])
		if got["of"] != group {
			t.Errorf("group %s: got %v", group, got["of"])
		}
	}
	if got := decode(t, b.mustExecute(vedette.GetArgs{Target: b.target("twin", "a")}).Objects[0]); got["of"] != one {
		t.Errorf("without a group: got %v, want that of %s", got, one)
	}
	b.wantFailure(vedette.DeleteArgs{Target: b.target("twin", "a")}, 400, "Twin."+one, "Twin."+two)
	b.wantFailure(vedette.GetArgs{Target: b.target("job", "a")}, 404, `jobs.batch "a" not found`)
}

// TestKindsThatDifferByCase serves two kinds of one group whose names differ by case, and one that another
// kind has as a short name. An operation that names one of them exactly means no other.
func TestKindsThatDifferByCase(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	group := b.customGroup()
	for _, names := range []object{
		{"kind": "Widget", "plural": "awidgets", "singular": "awidget", "shortNames": []any{"gadget"}},
		{"kind": "WIDGET", "plural": "zwidgets", "singular": "zwidget"},
		{"kind": "Gadget", "plural": "zgadgets", "singular": "zgadget"},
	} {
		b.createCustomKindNamed(group, "v1", names, nil)
	}
	plurals := map[string]string{"Widget": "awidgets", "WIDGET": "zwidgets", "Gadget": "zgadgets"}
	manifestOf := func(kind, name string) object {
		return object{"apiVersion": group + "/v1", "kind": kind, "metadata": object{"name": name}, "of": kind}
	}
	for kind, plural := range plurals {
		b.apply(vedette.StrategyDefault, manifestOf(kind, "a"))
		if got := b.live("/apis/"+group+"/v1", plural, "a")["of"]; got != kind {
			t.Errorf("%s: got %v", kind, got)
		}
	}
	must(t, plane.Await(t.Context(), "/apis", func(object) bool {
		return b.execute(vedette.GetArgs{Target: b.target("zgadgets."+group, "a")}).State == vedette.Done
	}))
	for kind := range plurals {
		for _, target := range []vedette.Target{{Kind: kind + "." + group}, {Kind: kind, APIVersion: group + "/v1"}} {
			target.Namespace, target.Name = b.namespace, "a"
			if got := decode(t, b.mustExecute(vedette.GetArgs{Target: target}).Objects[0]); got["of"] != kind {
				t.Errorf("%+v: got %v", target, got["of"])
			}
		}
	}
	b.mustExecute(vedette.DeleteArgs{Target: vedette.Target{APIVersion: group + "/v1", Kind: "WIDGET", Namespace: b.namespace, Name: "a"}})
	if got := b.live("/apis/"+group+"/v1", "awidgets", "a")["of"]; got != "Widget" {
		t.Errorf("after WIDGET a was deleted: got Widget a %v", got)
	}
	b.wantFailure(vedette.GetArgs{Target: b.target("widget."+group, "a")}, 400, "ambiguous")
	b.wantFailure(vedette.GetArgs{Target: vedette.Target{APIVersion: group + "/v1", Kind: "widget", Namespace: b.namespace, Name: "a"}}, 400, "ambiguous")
}
