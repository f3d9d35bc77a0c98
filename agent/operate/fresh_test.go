//go:build linux

package operate_test

import (
	"bytes"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
)

// TestFreshOnlyForObjectsOfFeeds writes objects that an account's feeds cover, and others.
func TestFreshOnlyForObjectsOfFeeds(t *testing.T) {
	must(t, startPlane())
	c, err := kube.Connect(kube.Access{KubeconfigFile: plane.Kubeconfig()}, kube.Options{})
	must(t, err)
	defer c.Close()
	cat, err := c.Discover(t.Context())
	must(t, err)
	selection := watch.Selection{Kinds: []string{"configmap", "horizontalpodautoscaler"}, OnlySpinnakerManaged: true}
	b := newTestbed(t, operate.Config{Coverage: func(r vedette.Resource, o *vedette.Object) operate.Coverage {
		switch {
		case selection.Covers(cat, r, o):
			return operate.Reported
		case selection.Selects(r, o):
			return operate.ReportedElsewhere
		}
		return operate.NotReported
	}})
	managed := func(o object) object {
		o["metadata"].(object)["annotations"] = object{"moniker.spinnaker.io/application": "web"}
		return o
	}
	scaler := func(version string) object {
		return managed(object{"apiVersion": "autoscaling/" + version, "kind": "HorizontalPodAutoscaler", "metadata": object{"name": "h-" + version},
			"spec": object{"scaleTargetRef": object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 5}})
	}
	for _, tt := range []struct {
		name   string
		object object
		want   operate.Coverage
	}{
		{"of a kind that is watched", managed(configMap("a", nil)), operate.Reported},
		{"that Spinnaker does not manage", configMap("b", nil), operate.NotReported},
		{"of another kind", managed(secretManifest("x")), operate.NotReported},
		{"in the version of the feed", scaler("v2"), operate.Reported},
		{"in another version", scaler("v1"), operate.ReportedElsewhere},
	} {
		out := b.apply("", tt.object)
		if (out.CacheObject != nil) != (tt.want == operate.Reported) || (out.Awaited != nil) != (tt.want == operate.ReportedElsewhere) || len(out.Objects) != 1 {
			t.Errorf("object %s: got an object to store: %v, awaited: %v, %d objects", tt.name, out.CacheObject != nil, out.Awaited, len(out.Objects))
		}
		if out.Awaited != nil && (out.Awaited.Key != out.Keys[0] || out.Awaited.Version != dig(decode(t, out.Objects[0]), "metadata", "resourceVersion")) {
			t.Errorf("object %s: got awaited %v, want the version of %s", tt.name, out.Awaited, out.Objects[0])
		}
	}
	if out := b.mustExecute(vedette.RecacheArgs{Target: b.target("horizontalpodautoscaler.v1.autoscaling", "h-v1")}); out.CacheObject != nil || out.Awaited == nil {
		t.Errorf("recache of an object in another version: got %+v", out)
	}
	if out := b.mustExecute(vedette.RecacheArgs{Target: b.target("configmap", "b")}); out.CacheObject != nil || len(out.Keys) != 1 {
		t.Errorf("recache of an object that no feed covers: got %+v", out)
	}
	if out := b.mustExecute(vedette.RecacheArgs{Target: b.target("configmap", "a")}); out.CacheObject == nil {
		t.Error("recache of an object that a feed covers: got nothing")
	}
}

func TestNewRedactorAppliesAtOnce(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.apply("", configMap("c", object{"a": "1", "token": "hush"}))
	before := b.mustExecute(vedette.GetArgs{Target: b.target("cm", "c")})
	lifts := []vedette.Projection{{Kind: vedette.Kind{Name: "ConfigMap"}, Fields: []vedette.ProjectionField{{Name: "n", Path: "data.#"}}}}
	r, err := redact.New(redact.Config{ConfigMapKeys: []string{"token"}}, lifts, nil)
	must(t, err)
	b.op.SetRedactor(r)
	after := b.mustExecute(vedette.GetArgs{Target: b.target("cm", "c")})
	if !bytes.Contains(before.Objects[0], []byte("hush")) || bytes.Contains(after.Objects[0], []byte("hush")) || string(after.CacheObject.Summary) != `{"n":2}` {
		t.Errorf("before %s\nafter %s, %s", before.Objects[0], after.Objects[0], after.CacheObject.Summary)
	}
}
