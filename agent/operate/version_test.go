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
	"github.com/vedette-io/vedette/agent/operate"
	"github.com/vedette-io/vedette/agent/watch"
)

// version asks which version a manifest becomes.
func (b *bench) version(o object) vedette.Version {
	b.Helper()
	var v vedette.Version
	must(b, json.Unmarshal(b.done(vedette.VersionArgs{Manifest: encode(b, o), Namespace: b.namespace}).Result, &v))
	return v
}

func (b *bench) becomes(o object, want vedette.Version) {
	b.Helper()
	if got := b.version(o); got != want {
		b.Errorf("the manifest becomes %+v, want %+v", got, want)
	}
}

// deployed is a manifest as Spinnaker writes it in a version.
func (b *bench) deployed(o object, version int) object {
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

// deploy asks for the version of a manifest and applies it, as Spinnaker does.
func (b *bench) deploy(s vedette.Strategy, o object) vedette.Version {
	b.Helper()
	v := b.version(o)
	b.apply(s, b.deployed(o, v.Number))
	return v
}

func secretOf(password string) object {
	return object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}, "stringData": object{"password": password}}
}

func podOf(image string) object {
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "s"}, "spec": object{
		"terminationGracePeriodSeconds": 0, "containers": []any{object{"name": "main", "image": image}}}}
}

// TestVersions deploys one manifest after the other, of each kind that has
// versions and in each way that leaves something else to compare with.
func TestVersions(t *testing.T) {
	always := operate.Mode{Enabled: "always"}
	replicaSet := func(v string) object {
		o := rolled("ReplicaSet", "s", v)
		o["spec"].(object)["replicas"] = 0
		return o
	}
	for _, tt := range []struct {
		why    string
		mode   operate.Mode
		by     vedette.Strategy
		plural string
		of     func(v string) object
	}{
		{"a ConfigMap", operate.Mode{}, "", "configmaps", func(v string) object { return configMap("s", object{"v": v}) }},
		{"a ConfigMap client-side", operate.Mode{}, vedette.ClientSide, "configmaps", func(v string) object { return configMap("s", object{"v": v}) }},
		{"a ConfigMap with nulls", operate.Mode{}, "", "configmaps", func(v string) object { return configMap("s", object{"v": v, "n": nil}) }},
		{"a ConfigMap with nulls client-side", operate.Mode{}, vedette.ClientSide, "configmaps", func(v string) object { return configMap("s", object{"v": v, "n": nil}) }},
		{"a ConfigMap with nulls created", operate.Mode{}, vedette.CreateOnly, "configmaps", func(v string) object { return configMap("s", object{"v": v, "n": nil}) }},
		{"a Secret", operate.Mode{}, "", "secrets", secretOf},
		{"a Secret client-side", operate.Mode{}, vedette.ClientSide, "secrets", secretOf},
		{"a Secret replaced", operate.Mode{}, vedette.ReplaceObject, "secrets", secretOf},
		{"a Secret recreated", operate.Mode{}, vedette.Recreate, "secrets", secretOf},
		{"a Pod", operate.Mode{}, "", "pods", podOf},
		{"a Pod server-side", always, "", "pods", podOf},
		{"a ReplicaSet", operate.Mode{}, "", "replicasets", replicaSet},
		{"a ReplicaSet server-side", always, "", "replicasets", replicaSet},
	} {
		t.Run(tt.why, func(t *testing.T) {
			b := newBench(t, operate.Config{ServerSideApply: tt.mode})
			b.becomes(tt.of("a"), vedette.Version{})
			b.deploy(tt.by, tt.of("a"))
			b.becomes(tt.of("a"), vedette.Version{Exists: true, Latest: "s-v000"})
			b.becomes(tt.of("b"), vedette.Version{Number: 1, Latest: "s-v000"})
			b.deploy(tt.by, tt.of("b"))
			b.deploy(tt.by, tt.of("c"))
			b.becomes(tt.of("b"), vedette.Version{Number: 1, Exists: true, Latest: "s-v002"})
			none := int64(0)
			b.done(vedette.DeleteArgs{Target: b.target(tt.plural, "s-v001"), GraceSeconds: &none})
			b.becomes(tt.of("b"), vedette.Version{Number: 3, Latest: "s-v002"})
			b.done(vedette.DeleteArgs{Target: b.target(tt.plural, "s-v002"), GraceSeconds: &none})
			b.becomes(tt.of("b"), vedette.Version{Number: 1, Latest: "s-v000"})
		})
	}
}

// TestVersionsOfKubectl finds the versions of what Clouddriver's kubectl applied.
func TestVersionsOfKubectl(t *testing.T) {
	b := newBench(t, operate.Config{})
	number := secretOf("a")
	number["immutable"] = false
	for _, o := range []object{number, configMap("c", object{"a": "1"}), podOf("example.com/a")} {
		b.kubectlApply([]object{b.deployed(o, 7)})
		name := dig(o, "metadata", "name").(string) + "-v007"
		b.becomes(o, vedette.Version{Number: 7, Exists: true, Latest: name})
		o["metadata"].(object)["labels"] = object{"metadata": "is ignored"}
		b.becomes(o, vedette.Version{Number: 7, Exists: true, Latest: name})
		o["more"] = 1
		b.becomes(o, vedette.Version{Number: 8, Latest: name})
	}
}

// TestVersionsOfOthers ignores what is not of the series, and reads what is in
// whatever form it stands.
func TestVersionsOfOthers(t *testing.T) {
	b := newBench(t, operate.Config{})
	of := func(version string, annotations object) object {
		o := b.deployed(configMap("c", object{"a": "1"}), 0)
		o["metadata"].(object)["name"] = version
		for name, value := range annotations {
			o["metadata"].(object)["annotations"].(object)[name] = value
		}
		return o
	}
	for _, o := range []object{
		configMap("c-v009", object{"a": "1"}),
		of("other-name", object{"artifact.spinnaker.io/name": "d", "artifact.spinnaker.io/version": "v010"}),
		of("other-type", object{"artifact.spinnaker.io/type": "kubernetes/secret", "artifact.spinnaker.io/version": "v011"}),
		of("docker", object{"artifact.spinnaker.io/type": "docker/image", "artifact.spinnaker.io/version": "v012"}),
		of("other-place", object{"artifact.spinnaker.io/location": "elsewhere", "artifact.spinnaker.io/version": "v013"}),
	} {
		b.apply("", o)
	}
	b.becomes(configMap("c", object{"a": "1"}), vedette.Version{})
	b.apply("", of("c", object{"artifact.spinnaker.io/version": ""}))
	b.becomes(configMap("c", object{"a": "1"}), vedette.Version{Latest: "c"}) // it has no version that could be reused
	b.apply("", of("c-v1235", object{"artifact.spinnaker.io/version": "", "artifact.spinnaker.io/type": "kubernetes/CONFIGMAP"}))
	if got := b.version(configMap("c", object{"a": "2"})); got.Number != 1236 {
		t.Errorf("after a version that stands in the name only comes %+v", got)
	}
	if got := b.version(configMap("c", object{"a": "1"})); got.Number != 1235 || !got.Exists {
		t.Errorf("the same manifest is %+v", got)
	}
	b.fails(vedette.VersionArgs{Manifest: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"a-"}}`), Namespace: b.namespace}, 400, "metadata.name")
	b.fails(vedette.VersionArgs{Manifest: []byte(`{"apiVersion":"v1","kind":"Pot","metadata":{"name":"a"}}`), Namespace: b.namespace}, 404, `no kind "Pot"`)
	b.fails(vedette.VersionArgs{Manifest: []byte(`[]`), Namespace: b.namespace}, 400, "no object")
}

// TestVersionsOfCustomKinds has them by the whole name of the kind.
func TestVersionsOfCustomKinds(t *testing.T) {
	b := newBench(t, operate.Config{ServerSideApply: operate.Mode{Enabled: "always"}})
	b.customKind("Thing", "things")
	thing := func(n any) object {
		return object{"apiVersion": b.group() + "/v1", "kind": "Thing", "metadata": object{"name": "t"}, "spec": object{"n": n, "list": []any{nil, "x", true}}}
	}
	first := b.deployed(thing(1), 0)
	first["metadata"].(object)["annotations"].(object)["artifact.spinnaker.io/type"] = "kubernetes/Thing." + b.group()
	b.apply("", first)
	if got := string(b.done(vedette.VersionArgs{Namespace: b.namespace, Manifest: bytes.Replace(encode(t, thing("one")), []byte(`"one"`), []byte("1.0"), 1)}).Result); !strings.Contains(got, `"exists":true`) {
		t.Errorf("1.0 for 1 is %s", got)
	}
	b.becomes(thing(2), vedette.Version{Number: 1, Latest: "t-v000"})
}

// TestAnEqualApplyChangesNothing applies a Secret again, by this operator and by
// one that knows no salts.
func TestAnEqualApplyChangesNothing(t *testing.T) {
	b := newBench(t, operate.Config{})
	b.deploy("", secretOf("a"))
	before := dig(b.live(core, "secrets", "s-v000"), "metadata", "resourceVersion")
	b.deploy("", secretOf("a"))
	b.op = b.another(operate.Config{})
	b.apply("", b.deployed(secretOf("a"), 0))
	if after := dig(b.live(core, "secrets", "s-v000"), "metadata", "resourceVersion"); after != before {
		t.Errorf("its version went from %v to %v", before, after)
	}
	b.deploy("", secretOf("b"))
	salt := func(name string) string {
		text, _ := dig(b.live(core, "secrets", name), "metadata", "annotations", contentAnnotation).(string)
		head, _, _ := strings.Cut(strings.TrimPrefix(text, "600000."), ".")
		return head
	}
	if a, c := salt("s-v000"), salt("s-v001"); a == "" || a != c {
		t.Errorf("versions of one series have the salts %q and %q", a, c)
	}
}

// another is one more operator on the same cluster.
func (b *bench) another(cfg operate.Config) *operate.Operator {
	b.Helper()
	c, err := watch.Connect(watch.Access{KubeconfigFile: plane.Kubeconfig()}, watch.Options{})
	must(b, err)
	b.Cleanup(c.Close)
	op, err := operate.New(c, cfg)
	must(b, err)
	return op
}

const contentAnnotation = "vedette.io/content"

// TestOneThousandConfigMaps asks for a version among many objects, within a
// bound that says that they were not read one by one.
func TestOneThousandConfigMaps(t *testing.T) {
	b := newBench(t, operate.Config{})
	big := strings.Repeat("x", 20_000)
	for i := range 1000 {
		o := configMap(fmt.Sprintf("other-%d", i), object{"big": big})
		if i%100 == 0 {
			o = b.deployed(configMap("c", object{"n": fmt.Sprint(i)}), i/100)
		}
		must(t, plane.Create(t.Context(), b.path(core, "configmaps", ""), o))
	}
	start := time.Now()
	b.becomes(configMap("c", object{"n": "200"}), vedette.Version{Number: 2, Exists: true, Latest: "c-v009"})
	b.becomes(configMap("c", object{"n": "new"}), vedette.Version{Number: 10, Latest: "c-v009"})
	t.Logf("two versions took %v", time.Since(start))
}

// TestSlowDigestsEndByTheDeadline gives a series more salts than there is time
// for.
func TestSlowDigestsEndByTheDeadline(t *testing.T) {
	b := newBench(t, operate.Config{})
	for i := range 40 {
		o := b.deployed(secretOf("x"), i)
		salt := strings.Repeat("A", 20) + string(rune('A'+i%26)) + []string{"A", "Q"}[i/26]
		o["metadata"].(object)["annotations"].(object)[contentAnnotation] = "1000000." + salt + "." + strings.Repeat("A", 43)
		must(t, plane.Create(t.Context(), b.path(core, "secrets", ""), o))
	}
	start := time.Now()
	out := b.op.Do(context.Background(), vedette.Operation{Deadline: time.Now().Add(time.Second),
		Args: vedette.VersionArgs{Manifest: encode(t, secretOf("y")), Namespace: b.namespace}})
	if out.State != vedette.Failed || out.Status != 504 || time.Since(start) > 10*time.Second {
		t.Errorf("after %v: %+v", time.Since(start), out)
	}
}

// TestVersionsOfSecretsStayHere looks for the data and for its digest in all
// that operations tell of a Secret with versions.
func TestVersionsOfSecretsStayHere(t *testing.T) {
	b := newBench(t, operate.Config{})
	const canary = "tr0ub4dor-and-7"
	var told []byte
	for i, s := range []vedette.Strategy{vedette.ByMode, vedette.ClientSide, vedette.ReplaceObject, vedette.Recreate, vedette.CreateOnly} {
		o := secretOf(fmt.Sprint(canary, i))
		told = append(told, encode(t, b.done(vedette.VersionArgs{Manifest: encode(t, o), Namespace: b.namespace}))...)
		told = append(told, encode(t, b.apply(s, b.deployed(o, i)))...)
		live := b.live(core, "secrets", fmt.Sprintf("s-v%03d", i))
		if has := dig(live, "metadata", "annotations", contentAnnotation) != nil; has == (s == vedette.ClientSide) {
			t.Errorf("by %q it has a digest: %v", s, has)
		}
		told = append(told, encode(t, b.done(vedette.GetArgs{Target: b.target("secret", fmt.Sprintf("s-v%03d", i))}))...)
		told = append(told, encode(t, b.done(vedette.RecacheArgs{Target: b.target("secret", fmt.Sprintf("s-v%03d", i))}))...)
	}
	told = append(told, encode(t, b.done(vedette.ListArgs{Target: b.target("secret", "")}))...)
	told = append(told, encode(t, b.do(vedette.VersionArgs{Namespace: b.namespace,
		Manifest: encode(t, object{"apiVersion": canary, "kind": "Secret", "metadata": object{"name": "s"}, "data": object{"a": canary}})}))...)
	for _, form := range []string{canary, "dHIwdWI0ZG9yLWFuZC03", contentAnnotation, "600000."} {
		if i := bytes.Index(told, []byte(form)); i >= 0 {
			t.Errorf("%q is told: %s", form, told[max(0, i-300):min(len(told), i+80)])
		}
	}
}
