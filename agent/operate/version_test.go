//go:build linux

package operate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/operate/apply"
)

// computeVersion requests the version of a manifest.
func (b *testbed) computeVersion(o object) vedette.Version {
	b.Helper()
	var v vedette.Version
	must(b, json.Unmarshal(b.mustExecute(vedette.VersionArgs{Manifest: encode(b, o), Namespace: b.namespace}).Result, &v))
	return v
}

func (b *testbed) wantVersion(o object, want vedette.Version) {
	b.Helper()
	if got := b.computeVersion(o); got != want {
		b.Errorf("version: got %+v, want %+v", got, want)
	}
}

// versionedManifest returns a manifest as Spinnaker writes it into a version.
func (b *testbed) versionedManifest(o object, version int) object {
	b.Helper()
	o = decode(b, encode(b, o))
	meta := o["metadata"].(object)
	name := meta["name"].(string)
	kind := o["kind"].(string)
	meta["annotations"] = object{"artifact.spinnaker.io/type": "kubernetes/" + strings.ToLower(kind[:1]) + kind[1:], "artifact.spinnaker.io/name": name,
		"artifact.spinnaker.io/location": b.namespace, "artifact.spinnaker.io/version": fmt.Sprintf("v%03d", version)}
	meta["name"] = fmt.Sprintf("%s-v%03d", name, version)
	return o
}

// deploy requests the version of a manifest and applies it, as Spinnaker does.
func (b *testbed) deploy(s vedette.Strategy, o object) vedette.Version {
	b.Helper()
	v := b.computeVersion(o)
	b.apply(s, b.versionedManifest(o, v.Number))
	return v
}

func secretManifest(password string) object {
	return object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "stringData": object{"password": password}}
}

func podManifest(image string) object {
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "s"}, "spec": object{
		"terminationGracePeriodSeconds": 0, "containers": []any{object{"name": "main", "image": image}}}}
}

// TestVersionsAreReused deploys manifests of each kind that has versions, in each way that leaves something else
// to compare with.
func TestVersionsAreReused(t *testing.T) {
	always := apply.Mode{Enabled: "always"}
	replicaSet := func(v string) object {
		o := workloadManifest("ReplicaSet", "s", v)
		o["spec"].(object)["replicas"] = 0
		return o
	}
	for _, tt := range []struct {
		name   string
		mode   apply.Mode
		by     vedette.Strategy
		plural string
		of     func(v string) object
	}{
		{"a ConfigMap", apply.Mode{}, "", "configmaps", func(v string) object { return configMap("s", object{"v": v}) }},
		{"a ConfigMap client-side", apply.Mode{}, vedette.StrategyClientSide, "configmaps", func(v string) object { return configMap("s", object{"v": v}) }},
		{"a ConfigMap with nulls", apply.Mode{}, "", "configmaps", func(v string) object { return configMap("s", object{"v": v, "n": nil}) }},
		{"a ConfigMap with nulls client-side", apply.Mode{}, vedette.StrategyClientSide, "configmaps", func(v string) object { return configMap("s", object{"v": v, "n": nil}) }},
		{"a ConfigMap with nulls created", apply.Mode{}, vedette.StrategyCreateOnly, "configmaps", func(v string) object { return configMap("s", object{"v": v, "n": nil}) }},
		{"a Secret", apply.Mode{}, "", "secrets", secretManifest},
		{"a Secret client-side", apply.Mode{}, vedette.StrategyClientSide, "secrets", secretManifest},
		{"a Secret replaced", apply.Mode{}, vedette.StrategyReplace, "secrets", secretManifest},
		{"a Secret recreated", apply.Mode{}, vedette.StrategyRecreate, "secrets", secretManifest},
		{"a Pod", apply.Mode{}, "", "pods", podManifest},
		{"a Pod server-side", always, "", "pods", podManifest},
		{"a ReplicaSet", apply.Mode{}, "", "replicasets", replicaSet},
		{"a ReplicaSet server-side", always, "", "replicasets", replicaSet},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newTestbed(t, operate.Config{ServerSideApply: tt.mode})
			b.wantVersion(tt.of("a"), vedette.Version{})
			b.deploy(tt.by, tt.of("a"))
			b.wantVersion(tt.of("a"), vedette.Version{Exists: true, Latest: "s-v000"})
			b.wantVersion(tt.of("b"), vedette.Version{Number: 1, Latest: "s-v000"})
			b.deploy(tt.by, tt.of("b"))
			b.deploy(tt.by, tt.of("c"))
			b.wantVersion(tt.of("b"), vedette.Version{Number: 1, Exists: true, Latest: "s-v002"})
			none := int64(0)
			b.mustExecute(vedette.DeleteArgs{Target: b.target(tt.plural, "s-v001"), GraceSeconds: &none})
			b.wantVersion(tt.of("b"), vedette.Version{Number: 3, Latest: "s-v002"})
			b.mustExecute(vedette.DeleteArgs{Target: b.target(tt.plural, "s-v002"), GraceSeconds: &none})
			b.wantVersion(tt.of("b"), vedette.Version{Number: 1, Latest: "s-v000"})
		})
	}
}

// TestCreateMatchesApply creates versions and checks that they are what an apply would have created: the
// same manifest finds them, an apply removes what the manifest no longer has, and creating them again
// fails.
func TestCreateMatchesApply(t *testing.T) {
	always := apply.Mode{Enabled: "always"}
	for _, tt := range []struct {
		name         string
		mode         apply.Mode
		plural       string
		group        string
		manifest     object
		isClientSide bool // it gets the last-applied annotation
	}{
		{"a ConfigMap", apply.Mode{}, "configmaps", core, configMap("s", object{"v": "a"}), false},
		{"a Secret", apply.Mode{}, "secrets", core, secretManifest("a"), false},
		{"a Pod", apply.Mode{}, "pods", core, podManifest("a"), true},
		{"a Pod server-side", always, "pods", core, podManifest("a"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newTestbed(t, operate.Config{ServerSideApply: tt.mode})
			v := b.versionedManifest(tt.manifest, 0)
			v["metadata"].(object)["labels"] = object{"dropped": "yes"}
			b.apply(vedette.StrategyCreateOnly, v)
			live := b.live(tt.group, tt.plural, "s-v000")
			if _, has := dig(live, "metadata", "annotations").(object)[apply.LastApplied]; has != tt.isClientSide {
				t.Errorf("last-applied annotation: got %v, want %v", has, tt.isClientSide)
			}
			b.wantVersion(tt.manifest, vedette.Version{Exists: true, Latest: "s-v000"})
			b.wantFailure(vedette.ApplyArgs{Manifest: encode(t, v), Namespace: b.namespace, Strategy: vedette.StrategyCreateOnly}, 409, "already exists")
			b.apply("", b.versionedManifest(tt.manifest, 0))
			if labels, has := dig(b.live(tt.group, tt.plural, "s-v000"), "metadata").(object)["labels"]; has {
				t.Errorf("after an apply without labels: got %v", labels)
			}
		})
	}
}

// TestVersionsOfObjectsAppliedByKubectl checks the versions of objects that Clouddriver's kubectl applied.
func TestVersionsOfObjectsAppliedByKubectl(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	number := secretManifest("a")
	number["immutable"] = false
	for _, o := range []object{number, configMap("c", object{"a": "1"}), podManifest("example.com/a")} {
		b.kubectlApply([]object{b.versionedManifest(o, 7)})
		name := dig(o, "metadata", "name").(string) + "-v007"
		b.wantVersion(o, vedette.Version{Number: 7, Exists: true, Latest: name})
		o["metadata"].(object)["labels"] = object{"metadata": "is ignored"}
		b.wantVersion(o, vedette.Version{Number: 7, Exists: true, Latest: name})
		o["more"] = 1
		b.wantVersion(o, vedette.Version{Number: 8, Latest: name})
	}
}

// TestVersionsIgnoreOtherSeries checks that objects of other series are ignored, and that versions are
// read in all forms.
func TestVersionsIgnoreOtherSeries(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	of := func(version string, annotations object) object {
		o := b.versionedManifest(configMap("c", object{"a": "1"}), 0)
		o["metadata"].(object)["name"] = version
		for name, value := range annotations {
			o["metadata"].(object)["annotations"].(object)[name] = value
		}
		return o
	}
	for _, o := range []object{
		configMap("c-v009", object{"a": "1"}),
		of("other-name", object{"artifact.spinnaker.io/name": "d", "artifact.spinnaker.io/version": "v010"}),
		of("no-type", object{"artifact.spinnaker.io/type": "", "artifact.spinnaker.io/version": "v011"}),
	} {
		b.apply("", o)
	}
	b.wantVersion(configMap("c", object{"a": "1"}), vedette.Version{})
	b.apply("", configMap("c-v000", object{"a": "1"}))
	b.wantVersion(configMap("c", object{"a": "1"}), vedette.Version{Number: 1}) // it could not be created
	b.mustExecute(vedette.DeleteArgs{Target: b.target("configmaps", "c-v000")})
	b.apply("", of("c", object{"artifact.spinnaker.io/version": ""}))
	b.wantVersion(configMap("c", object{"a": "1"}), vedette.Version{Latest: "c"}) // it has no version that could be reused
	b.apply("", of("other-place", object{"artifact.spinnaker.io/location": "elsewhere", "artifact.spinnaker.io/version": "v013"}))
	if got := b.computeVersion(configMap("c", object{"a": "2"})); got.Number != 14 { // its manifest had no namespace
		t.Errorf("after a version with another location: got %+v", got)
	}
	b.apply("", of("c-v1235", object{"artifact.spinnaker.io/version": "", "artifact.spinnaker.io/type": "kubernetes/CONFIGMAP"}))
	if got := b.computeVersion(configMap("c", object{"a": "2"})); got.Number != 1236 {
		t.Errorf("after a version that only the name has: got %+v", got)
	}
	if got := b.computeVersion(configMap("c", object{"a": "1"})); got.Number != 1235 || !got.Exists {
		t.Errorf("same manifest: got %+v", got)
	}
	b.wantFailure(vedette.VersionArgs{Manifest: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"a-"}}`), Namespace: b.namespace}, 400, "metadata.name")
	b.wantFailure(vedette.VersionArgs{Manifest: []byte(`{"apiVersion":"v1","kind":"Pot","metadata":{"name":"a"}}`), Namespace: b.namespace}, 404, `no kind "Pot"`)
	b.wantFailure(vedette.VersionArgs{Manifest: []byte(`[]`), Namespace: b.namespace}, 400, "not a JSON object")
}

// TestVersionsOfCustomResources checks that the type of the artifact is the kind with its group.
func TestVersionsOfCustomResources(t *testing.T) {
	b := newTestbed(t, operate.Config{ServerSideApply: apply.Mode{Enabled: "always"}})
	b.createCustomKind("Thing", "things")
	thing := func(n any) object {
		return object{"apiVersion": b.customGroup() + "/v1", "kind": "Thing", "metadata": object{"name": "t"}, "spec": object{"n": n, "list": []any{nil, "x", true}}}
	}
	first := b.versionedManifest(thing(1), 0)
	first["metadata"].(object)["annotations"].(object)["artifact.spinnaker.io/type"] = "kubernetes/Thing." + b.customGroup()
	b.apply("", first)
	if got := string(b.mustExecute(vedette.VersionArgs{Namespace: b.namespace, Manifest: bytes.Replace(encode(t, thing("one")), []byte(`"one"`), []byte("1.0"), 1)}).Result); !strings.Contains(got, `"exists":true`) {
		t.Errorf("1.0 instead of 1: got %s", got)
	}
	b.wantVersion(thing(2), vedette.Version{Number: 1, Latest: "t-v000"})
}

// TestReapplyChangesNothing applies a Secret again, by the same operator and by one without salts.
func TestReapplyChangesNothing(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.deploy("", secretManifest("a"))
	before := dig(b.live(core, "secrets", "s-v000"), "metadata", "resourceVersion")
	b.deploy("", secretManifest("a"))
	b.op = b.newOperator(operate.Config{})
	b.apply("", b.versionedManifest(secretManifest("a"), 0))
	if after := dig(b.live(core, "secrets", "s-v000"), "metadata", "resourceVersion"); after != before {
		t.Errorf("resourceVersion: got %v, then %v", before, after)
	}
	b.deploy("", secretManifest("b"))
	salt := func(name string) string {
		text, _ := dig(b.live(core, "secrets", name), "metadata", "annotations", contentAnnotation).(string)
		head, _, _ := strings.Cut(strings.TrimPrefix(text, "600000."), ".")
		return head
	}
	if a, c := salt("s-v000"), salt("s-v001"); a == "" || a != c {
		t.Errorf("salts of one series: got %q and %q", a, c)
	}
}

// newOperator returns another operator for the same cluster.
func (b *testbed) newOperator(cfg operate.Config) *operate.Operator {
	b.Helper()
	c, err := kube.Connect(kube.Access{KubeconfigFile: plane.Kubeconfig()}, kube.Options{})
	must(b, err)
	b.Cleanup(c.Close)
	op, err := operate.New(c, cfg)
	must(b, err)
	return op
}

const contentAnnotation = "vedette.io/content"

// TestVersionAmongThousandConfigMaps requests a version among many objects, within a time that is too
// short to read them one by one.
func TestVersionAmongThousandConfigMaps(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	big := strings.Repeat("x", 20_000)
	for i := range 1000 {
		o := configMap(fmt.Sprintf("other-%d", i), object{"big": big})
		if i%100 == 0 {
			o = b.versionedManifest(configMap("c", object{"n": fmt.Sprint(i)}), i/100)
		}
		must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), o))
	}
	start := time.Now()
	b.wantVersion(configMap("c", object{"n": "200"}), vedette.Version{Number: 2, Exists: true, Latest: "c-v009"})
	b.wantVersion(configMap("c", object{"n": "new"}), vedette.Version{Number: 10, Latest: "c-v009"})
	t.Logf("two versions took %v", time.Since(start))
}

// TestDigestComparisonEndsByDeadline gives a series more salts than can be compared in time. That no
// comparison starts after the deadline is checked by the tests of package versioning.
func TestDigestComparisonEndsByDeadline(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	for i := range 40 {
		o := b.versionedManifest(secretManifest("x"), i)
		salt := strings.Repeat("A", 20) + string(rune('A'+i%26)) + []string{"A", "Q"}[i/26]
		o["metadata"].(object)["annotations"].(object)[contentAnnotation] = "1000000." + salt + "." + strings.Repeat("A", 43)
		must(t, plane.Create(t.Context(), b.path(core, "secrets", ""), o))
	}
	out := b.op.Execute(context.Background(), vedette.Operation{Deadline: time.Now().Add(time.Second),
		Args: vedette.VersionArgs{Manifest: encode(t, secretManifest("y")), Namespace: b.namespace}})
	if out.State != vedette.Failed || out.Status != 504 {
		t.Errorf("got %+v", out)
	}
}

// TestVersionDoesNotReturnSecretData searches for the data and its digest in all outcomes of operations
// on a Secret with versions.
func TestVersionDoesNotReturnSecretData(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	const canary = "tr0ub4dor-and-7"
	var outcomes []byte
	for i, s := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyReplace, vedette.StrategyRecreate, vedette.StrategyCreateOnly} {
		o := secretManifest(fmt.Sprint(canary, i))
		outcomes = append(outcomes, encode(t, b.mustExecute(vedette.VersionArgs{Manifest: encode(t, o), Namespace: b.namespace}))...)
		outcomes = append(outcomes, encode(t, b.apply(s, b.versionedManifest(o, i)))...)
		live := b.live(core, "secrets", fmt.Sprintf("s-v%03d", i))
		if has := dig(live, "metadata", "annotations", contentAnnotation) != nil; has == (s == vedette.StrategyClientSide) {
			t.Errorf("strategy %q: got a digest: %v", s, has)
		}
		outcomes = append(outcomes, encode(t, b.mustExecute(vedette.GetArgs{Target: b.target("secret", fmt.Sprintf("s-v%03d", i))}))...)
		outcomes = append(outcomes, encode(t, b.mustExecute(vedette.RecacheArgs{Target: b.target("secret", fmt.Sprintf("s-v%03d", i))}))...)
	}
	outcomes = append(outcomes, encode(t, b.mustExecute(vedette.ListArgs{Target: b.target("secret", "")}))...)
	outcomes = append(outcomes, encode(t, b.execute(vedette.VersionArgs{Namespace: b.namespace,
		Manifest: encode(t, object{"apiVersion": canary, "kind": "Secret", "metadata": object{"name": "s"}, "data": object{"a": canary}})}))...)
	for _, form := range []string{canary, "dHIwdWI0ZG9yLWFuZC03", contentAnnotation, "600000."} {
		if i := bytes.Index(outcomes, []byte(form)); i >= 0 {
			t.Errorf("%q is in an outcome: %s", form, outcomes[max(0, i-300):min(len(outcomes), i+80)])
		}
	}
}
