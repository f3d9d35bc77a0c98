package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// generator generates JSON with everything that the rules look at, in any place.
type generator struct {
	*rand.Rand
	names    []string
	repeated bool // members may be repeated within an object
}

var relevantNames = []string{"kind", "apiVersion", "metadata", "data", "stringData", "binaryData", "annotations", "labels", "env", "name", "value", "items",
	"managedFields", "ownerReferences", "finalizers", "spec", "containers", "manifests", "list", "type", "uid", "controller", lastApplied, ContentAnnotation,
	"moniker.spinnaker.io/application", "helm.sh/hook", "kept-by-rule", "example.com/team", "a-credential", "tls.key", "Secret", "api-token"}

var relevantTexts = []string{"Secret", "SecretList", "v1", "apps/v1", "PartialObjectMetadata", "meta.k8s.io/v1", "Pod", "db_password", "API_TOKEN", "",
	`{"kind":"Secret"}`, `{"env":[{"name":"A"}]}`, `[{"annotations":1}]`, `"{\"kind\":\"S\\u0065cret\"}"`, "kind: Secret\ndata:\n", "env:\n- x", "H4sIAA", "eyJhIjo",
	`{"kind":"Service"}`, "plain text", "\u00e9\U0001F600\x01", "2025-10-01T10:00:00Z", `C:\\x`}

func (r generator) pick(from []string) string { return from[r.IntN(len(from))] }

// space returns white space, or mostly nothing.
func (r generator) space() string {
	if r.IntN(8) > 0 {
		return ""
	}
	return []string{" ", "\n", "\t ", "\r\n"}[r.IntN(4)]
}

// quote writes a string with some escaped characters.
func (r generator) quote(s string) string {
	if r.IntN(3) > 0 {
		text, _ := json.Marshal(s)
		return string(text)
	}
	var b strings.Builder
	for _, c := range s {
		if c < 0x7f && (c < ' ' || c == '"' || c == '\\' || r.IntN(3) == 0) {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return `"` + b.String() + `"`
}

func (r generator) value(depth int) string {
	n := r.IntN(10)
	if depth == 0 && n > 5 {
		n = 0
	}
	switch {
	case n < 3:
		return r.quote(r.pick(relevantTexts))
	case n < 6:
		return []string{"null", "true", "false", "0", "-1.5e+3", "12"}[r.IntN(6)]
	case n < 8:
		var list []string
		for range r.IntN(4) {
			list = append(list, r.space()+r.value(depth-1)+r.space())
		}
		return "[" + r.space() + strings.Join(list, ",") + "]"
	}
	return r.object(depth-1, nil)
}

// object writes an object with random members and the given complete members, in any order.
func (r generator) object(depth int, members []string) string {
	used := map[string]bool{}
	for range r.IntN(7) {
		name := r.pick(r.names)
		if used[name] && !r.repeated {
			continue
		}
		used[name] = true
		members = append(members, r.member(name, r.value(max(depth, 0))))
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ",") + r.space() + "}"
}

func (r generator) member(name, value string) string {
	return r.space() + r.quote(name) + r.space() + ":" + r.space() + value + r.space()
}

// TestRandomObjectsMatchReference compares Object with the reference on objects full of names
// and texts to which rules apply, in places where they do and where they do not.
func TestRandomObjectsMatchReference(t *testing.T) {
	withRules, withoutRules := mustNew(t, someRules, fuzzFields), mustNew(t, Config{}, fuzzFields)
	compared := 0
	for seed := range uint64(4000) {
		r := generator{Rand: rand.New(rand.NewPCG(seed, 1)), names: relevantNames}
		ref := reference{resource: resources[r.IntN(len(resources))]}
		redactor := withoutRules
		if r.IntN(2) == 0 {
			redactor, ref.config = withRules, someRules
		}
		meta := r.object(3, []string{r.member("name", `"n"`), r.member("resourceVersion", `"1"`)})
		raw := []byte(r.space() + r.object(6, []string{r.member("metadata", meta)}) + "\n")
		if !unique(raw) {
			continue
		}
		o, _, err := redactor.Object(nil, ref.resource, raw)
		if err != nil {
			if !strings.Contains(err.Error(), "list") {
				t.Fatalf("seed %d, %s: %v", seed, raw, err)
			}
			continue
		}
		ref.check(t, raw, o, fuzzFields)
		compared++
	}
	if compared < 2000 {
		t.Errorf("got only %d compared objects", compared)
	}
}

const canary = "c4n4ry"

// secretObject writes a Secret with canaries in all places that can hold data.
func (r generator) secretObject() string {
	data := `{"password":"` + canary + `"}`
	manifest := `{"apiVersion":"v1","kind":"Secret","data":` + data + `}`
	nested := r.quote(manifest)
	for range r.IntN(3) {
		nested = r.quote(`{"annotations":{"x":` + nested + `}}`)
	}
	annotations := []string{r.member(lastApplied, nested), r.member("some.tool/applied", nested), r.member("some.tool/yaml", r.quote("kind: Secret\ndata:\n  a: "+canary)),
		r.member(ContentAnnotation, r.quote(canary)), r.member("kept", r.quote("yes")), r.member("list", `["`+canary+`"]`),
		r.member("example.com/note", r.quote(canary)), r.member("kubernetes.io/change-cause", r.quote("kubectl create secret generic n --from-literal=a="+canary+" --record=true")),
		r.member("kapp.k14s.io/original-diff-md5", r.quote(canary)), r.member("reconcile.external-secrets.io/data-hash", r.quote(canary)),
		r.member("moniker.spinnaker.io/application", nested), r.member("helm.sh/hook", r.quote("eyJ"+canary))}
	meta := []string{r.member("name", `"n"`), r.member("resourceVersion", `"1"`), r.member("annotations", r.object(0, annotations)), r.member("later", data),
		r.member("managedFields", `[`+data+`]`), r.member("labels", `{"data":{"x":"`+canary+`"},"long":"`+strings.Repeat(canary, 11)+`","spaced":`+r.quote(canary+" ")+`,"encoded":"`+canary+`="}`), r.member("finalizers", data)}
	members := []string{r.member("kind", r.quote("Secret")), r.member("apiVersion", r.quote("v1")), r.member("metadata", r.object(0, meta)),
		r.member("data", data), r.member("data", r.quote(canary)), r.member("stringData", data), r.member("stringData", "[["+data+"]]"),
		r.member("type", data), r.member("invented", r.quote(canary)), r.member("immutable", data), r.member("data", "null")}
	return r.object(1, members)
}

// TestNoCanaryFromSecrets puts canaries in all places of a Secret that can hold data: repeated,
// escaped, nested and out of order. Projections request them. The test searches all memory
// that Object wrote.
func TestNoCanaryFromSecrets(t *testing.T) {
	paths := append([]string{"data", "stringData.password", "metadata.annotations", "metadata.labels", "type", "invented", "metadata.later"}, "metadata")
	r := mustNew(t, Config{}, projectionFields(paths...))
	for seed := range uint64(1000) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, 2)), names: []string{"a", "b", "finalizers", "x"}, repeated: true}
		raw := []byte(g.secretObject())
		if !json.Valid(raw) || !bytes.Contains(raw, []byte("4ry")) && !bytes.Contains(raw, []byte(`\u00`)) {
			t.Fatalf("invalid sample: %s", raw)
		}
		resource := []int{0, 1, 3}[g.IntN(3)] // the requested resource may be another one
		o, dst, err := r.Object(make([]byte, 0, g.IntN(2*len(raw))), resources[resource], raw)
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, raw, err)
		}
		mustNotContainCanary(t, raw, dst[:cap(dst)])
		mustNotContainCanary(t, raw, []byte(fmt.Sprintf("%+v", o)))
		mustNotContainCanary(t, raw, unescaped(t, o.Body))
		if o.Name != "n" {
			t.Fatalf("%s: got name %q", raw, o.Name)
		}
	}
}

// TestNoCanaryFromEmbeddedSecrets does the same for Secrets inside other objects.
func TestNoCanaryFromEmbeddedSecrets(t *testing.T) {
	r := mustNew(t, Config{}, projectionFields("spec", "spec.manifests.*.data", "spec.manifests.*.stringData.password", "spec.one"))
	for seed := range uint64(1000) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, 3)), names: []string{"a", "b", "x"}, repeated: true}
		data := `{"password":"` + canary + `"}`
		secret := func(members ...string) string {
			return g.object(1, append(members, g.member("data", data), g.member("stringData", data), g.member("data", g.quote(canary))))
		}
		secretWithKind := func() string {
			return secret(g.member("kind", g.quote("Secret")), g.member("apiVersion", g.quote("v1")),
				g.member("metadata", `{"annotations":{"`+lastApplied+`":`+g.quote(canary)+`,"`+ContentAnnotation+`":`+g.quote(canary)+`}}`))
		}
		list := g.object(0, []string{g.member("kind", g.quote("SecretList")), g.member("items", `[`+secret()+`,`+secretWithKind()+`]`)})
		spec := g.object(0, []string{g.member("manifests", `[`+secretWithKind()+`,`+secretWithKind()+`]`), g.member("one", secretWithKind()), g.member("two", list)})
		meta := g.object(0, []string{g.member("name", `"n"`), g.member("resourceVersion", `"1"`), g.member("annotations", g.object(0, []string{
			g.member("some.tool/applied", g.quote(`{"x":`+secretWithKind()+`}`)), g.member(lastApplied, g.quote(g.quote(`{"x":`+secretWithKind()+`}`)))}))})
		raw := []byte(g.object(0, []string{g.member("metadata", meta), g.member("spec", spec)}))
		o, dst, err := r.Object(nil, works, raw)
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, raw, err)
		}
		mustNotContainCanary(t, raw, dst[:cap(dst)])
		mustNotContainCanary(t, raw, unescaped(t, o.Body))
	}
}

// TestNoCanaryFromContentDigests searches for ContentAnnotation in objects of any kind, when
// projections and annotation prefixes request it.
func TestNoCanaryFromContentDigests(t *testing.T) {
	r, err := New(Config{SecretAnnotations: []string{"*"}}, []vedette.Projection{{Fields: projectionFields("metadata.annotations", `metadata.annotations.vedette\.io/content`)}}, []string{"vedette.io/", "kept"})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(200) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, 5)), names: []string{"a", "b", "x"}, repeated: true}
		annotations := []string{g.member(ContentAnnotation, g.quote(canary)), g.member(ContentAnnotation, `["`+canary+`"]`), g.member("kept", g.quote("yes"))}
		meta := g.object(0, []string{g.member("name", `"n"`), g.member("resourceVersion", `"1"`), g.member("annotations", g.object(0, annotations))})
		raw := []byte(g.object(0, []string{g.member("metadata", meta)}))
		o, dst, err := r.Object(nil, resources[g.IntN(len(resources))], raw)
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, raw, err)
		}
		mustNotContainCanary(t, raw, dst[:cap(dst)])
		mustNotContainCanary(t, raw, unescaped(t, o.Body))
		if o.Annotations["kept"] != "yes" || o.Annotations[ContentAnnotation] != "" {
			t.Fatalf("%s: got annotations %v, want no digest", raw, o.Annotations)
		}
	}
}

// TestNoCanaryFromRedactedValues does the same for values that rules redact.
func TestNoCanaryFromRedactedValues(t *testing.T) {
	r := mustNew(t, someRules, projectionFields("spec", "spec.containers.*.env.*.value", "data", "data.tls\\.key", "metadata.annotations"))
	for seed := range uint64(1000) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, 4)), names: []string{"a", "b", "x"}, repeated: true}
		hidden := func() string {
			return []string{g.quote(canary), `["` + canary + `"]`, `{"a":"` + canary + `"}`}[g.IntN(3)]
		}
		entry := func() string {
			return g.object(0, []string{g.member("name", g.quote("DB_PASSWORD")), g.member("value", hidden()), g.member("value", hidden()), g.member("name", g.quote("OTHER"))})
		}
		annotations := func() string { return g.object(0, []string{g.member("X-Credential-1", hidden())}) }
		pod := func() string {
			return g.object(0, []string{g.member("containers", `[`+g.object(0, []string{g.member("env", `[`+entry()+`,`+entry()+`]`)})+`]`), g.member("annotations", annotations())})
		}
		applied := g.quote(`{"spec":` + pod() + `}`)
		meta := g.object(0, []string{g.member("name", `"n"`), g.member("resourceVersion", `"1"`), g.member("annotations", g.object(0, []string{
			g.member("credential", hidden()), g.member(lastApplied, applied), g.member("some.tool/applied", g.quote(applied))}))})
		raw := []byte(g.object(0, []string{g.member("metadata", meta), g.member("spec", pod()), g.member("data", g.object(0, []string{g.member("tls.key", hidden())})),
			g.member("binaryData", g.object(0, []string{g.member("Secret1", hidden())}))}))
		o, dst, err := r.Object(nil, configMaps, raw)
		if err != nil {
			t.Fatalf("seed %d, %s: %v", seed, raw, err)
		}
		mustNotContainCanary(t, raw, dst)
		mustNotContainCanary(t, raw, unescaped(t, o.Body))
	}
}

func mustNotContainCanary(t *testing.T, raw, text []byte) {
	t.Helper()
	if bytes.Contains(text, []byte(canary)) {
		t.Fatalf("got a canary in %s\nfrom %s", text, raw)
	}
}

// unescaped resolves several layers of escapes, which could hide a canary.
func unescaped(t *testing.T, body []byte) []byte {
	t.Helper()
	for range 8 {
		body = unescape(nil, body)
	}
	return body
}
