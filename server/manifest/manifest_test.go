package manifest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestPatchesAreBoundToArtifacts binds artifacts in patches, which may have no kind.
func TestPatchesAreBoundToArtifacts(t *testing.T) {
	shop, test := "shop", map[string]any{"account": "test"}
	image := Artifact{Type: "docker/image", Name: "r.io/web", Reference: "r.io/web:2"}
	conf := Artifact{Type: "kubernetes/configMap", Name: "conf", Location: &shop, Reference: "conf-v001"}
	foreign := Artifact{Type: "kubernetes/configMap", Name: "conf", Location: &shop, Reference: "conf-v009", Metadata: test}
	for _, tt := range []struct {
		name, kind, patch, want, bound string
		names                          bool
	}{
		{"a strategic patch", "Deployment.apps", `{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"r.io/web"}],"volumes":[{"configMap":{"name":"conf"}}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":[{"image":"r.io/web:2","name":"a"}],"volumes":[{"configMap":{"name":"conf-v001"}}]}}}}`, "r.io/web:2 conf-v001", false},
		{"only bare names", "Deployment.apps", `{"spec":{"template":{"spec":{"containers":[{"image":"r.io/web:1"}]}}}}`, `{"spec":{"template":{"spec":{"containers":[{"image":"r.io/web:1"}]}}}}`, "", true},
		{"an unknown kind", "CronTab.stable.example.com", `{"spec":{"template":{"spec":{"containers":[{"image":"r.io/web"}]}}}}`, `{"spec":{"template":{"spec":{"containers":[{"image":"r.io/web"}]}}}}`, "", false},
		{"fields in an unexpected form", "Deployment.apps", `{"spec":{"template":{"spec":{"containers":{"image":"r.io/web"},"volumes":[1,null,{"configMap":"conf"},{"configMap":{"name":7}}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":{"image":"r.io/web"},"volumes":[1,null,{"configMap":"conf"},{"configMap":{"name":7}}]}}}}`, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			patch := mustParse(t, tt.patch)
			bound := Bind(vedette.ParseKind(tt.kind), patch, Binding{[]Artifact{image, foreign, conf}, "prod", "shop", tt.names})
			var references []string
			for _, a := range bound {
				references = append(references, a.Reference)
			}
			if got := string(patch.JSON()); got != tt.want || strings.Join(references, " ") != tt.bound {
				t.Errorf("bound %v\ngot  %s\nwant %s", references, got, tt.want)
			}
		})
	}
}

func TestTrafficPatchesSetSelectorLabels(t *testing.T) {
	const service = `{"apiVersion":"v1","kind":"Service","spec":{"selector":{"lb":"web","a/b~c":"x"}}}`
	for _, tt := range []struct{ name, service, target, attach, detach string }{
		{"labels are added to a template", service, `{"spec":{"template":{"metadata":{"labels":{"pod":"web"}}}},"metadata":{"labels":{"lb":"not this one"}}}`,
			`[{"op":"add","path":"/spec/template/metadata/labels/a~1b~0c","value":"x"},{"op":"add","path":"/spec/template/metadata/labels/lb","value":"web"}]`, ``},
		{"existing labels are replaced and removed", service, `{"metadata":{"labels":{"lb":"old","a/b~c":"x"}}}`,
			`[{"op":"replace","path":"/metadata/labels/a~1b~0c","value":"x"},{"op":"replace","path":"/metadata/labels/lb","value":"web"}]`,
			`[{"op":"remove","path":"/metadata/labels/a~1b~0c"},{"op":"remove","path":"/metadata/labels/lb"}]`},
		{"missing labels are created first", service, `{"spec":{"template":{"metadata":{}}}}`,
			`[{"op":"add","path":"/spec/template/metadata/labels","value":{}},{"op":"add","path":"/spec/template/metadata/labels/a~1b~0c","value":"x"},{"op":"add","path":"/spec/template/metadata/labels/lb","value":"web"}]`, ``},
		{"an empty value is a value", `{"apiVersion":"v1","kind":"Service","spec":{"selector":{"lb":""}}}`, `{"metadata":{"labels":{}}}`, `[{"op":"add","path":"/metadata/labels/lb","value":""}]`, ``},
		{"a Service without selector changes nothing", `{"apiVersion":"v1","kind":"Service"}`, `{"metadata":{}}`, ``, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			attach, err := AttachPatch(mustParse(t, tt.service), mustParse(t, tt.target))
			detach, errDetach := DetachPatch(mustParse(t, tt.service), mustParse(t, tt.target))
			if string(attach) != tt.attach || string(detach) != tt.detach || err != nil || errDetach != nil {
				t.Errorf("got  %s, %v\nwant %s\nand  %s, %v\nwant %s", attach, err, tt.attach, detach, errDetach, tt.detach)
			}
		})
	}
	if _, err := AttachPatch(mustParse(t, `{"apiVersion":"v2","kind":"Service"}`), Manifest{}); vedette.KindOf(err) != vedette.Invalid {
		t.Errorf("a Service of version 2: got %v, want an error of the kind Invalid", err)
	}
}

func TestLoadBalancersMustBeServices(t *testing.T) {
	target := mustParse(t, `{"metadata":{"namespace":"shop","annotations":{"traffic.spinnaker.io/load-balancers":"[\"service a\",\"svc b\"]"}}}`)
	const malformed = "Failed to perform operation with load balancer 'a'. Load balancers must be specified in the form '{kind} {name}', e.g. 'service my-service'"
	for _, tt := range []struct {
		name      string
		target    Manifest
		requested []string
		want      string
	}{
		{"annotated Services", target, nil, "Service shop/a, Service shop/b"},
		{"requested Services", target, []string{"Service c"}, "Service shop/c"},
		{"none", Manifest{}, nil, ""},
		{"an annotation that is not a list", mustParse(t, `{"metadata":{"annotations":{"traffic.spinnaker.io/load-balancers":"service a"}}}`), nil, ""},
		{"a name without a kind", target, []string{"a"}, malformed},
		{"another kind", target, []string{"ingress a"}, "No support for load balancing via ingress exists in Spinnaker"},
		{"a Service of another group", target, []string{"Service.serving.knative.dev a"}, "No support for load balancing via Service.serving.knative.dev exists in Spinnaker"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			keys, err := LoadBalancers(tt.target, tt.requested)
			var all []string
			for _, key := range keys {
				all = append(all, key.String())
			}
			got := strings.Join(all, ", ")
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// configMapVersion returns a live ConfigMap "conf-<v>" that was created on a day.
func configMapVersion(t *testing.T, v, day string) Manifest {
	return mustParse(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"conf-`+v+`","creationTimestamp":"2026-01-`+day+`T00:00:00Z",
		"annotations":{"artifact.spinnaker.io/type":"kubernetes/configMap","artifact.spinnaker.io/name":"conf","strategy.spinnaker.io/max-version-history":"2"}}}`)
}

func TestOldestVersionsAreOutdated(t *testing.T) {
	v0, v1, v2, v3 := configMapVersion(t, "v000", "01"), configMapVersion(t, "v001", "02"), configMapVersion(t, "v002", "03"), configMapVersion(t, "v003", "04")
	other, otherKind, unlimited := v0.Clone(), v0.Clone(), v3.Clone()
	ensureObject(other.metadata(), "annotations")["artifact.spinnaker.io/name"] = "other"
	ensureObject(otherKind.metadata(), "annotations")["artifact.spinnaker.io/type"] = "kubernetes/secret"
	ensureObject(unlimited.metadata(), "annotations")[annotMaxVersionHistory] = "-1"
	quoted := v0.Clone()
	ensureObject(quoted.metadata(), "annotations")["artifact.spinnaker.io/type"] = `"kubernetes/configMap"`
	ensureObject(quoted.metadata(), "annotations")["artifact.spinnaker.io/name"] = `"conf"`
	none := v3.Clone()
	ensureObject(none.metadata(), "annotations")[annotMaxVersionHistory] = "0"
	for _, tt := range []struct {
		name     string
		deployed Manifest
		live     []Manifest
		want     string
	}{
		{"the oldest are outdated", v3, []Manifest{v2, v0, v3, v1}, "conf-v000 conf-v001"},
		{"no more than two versions", v3, []Manifest{v2, v3}, ""},
		{"other artifacts do not count", v3, []Manifest{v2, other, otherKind, v3}, ""},
		{"an old version that is in use again stays", v0, []Manifest{v0, v1, v2, v3}, "conf-v001"},
		{"no limit without a number", unlimited, []Manifest{v0, v1, v2, v3}, ""},
		{"annotations of early versions of Spinnaker are JSON", v3, []Manifest{quoted, v2, v3}, "conf-v000"},
		{"a limit of one version", none, []Manifest{v2, v3}, "conf-v002"},
		{"objects without artifact have no versions", mustParse(t, `{"kind":"ConfigMap","metadata":{"annotations":{"strategy.spinnaker.io/max-version-history":"0"}}}`), []Manifest{v0}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(Outdated(tt.deployed, tt.live), " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDataOfSecretsIsRemoved(t *testing.T) {
	for _, kind := range []string{"Secret", "secrets", "SECRET"} {
		secret := mustParse(t, `{"apiVersion":"v1","kind":"`+kind+`","data":{"a":"czNjcmV0"},"stringData":{"b":"s3cret"},"stringdata":{"c":"s3cret"},"type":"Opaque",
			"metadata":{"name":"s","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"stringData\":{\"b\":\"s3cret\"}}","note":"s3cret","moniker.spinnaker.io/application":"me"}}}`)
		before := string(secret.JSON())
		want := `{"apiVersion":"v1","kind":"` + kind + `","metadata":{"annotations":{"moniker.spinnaker.io/application":"me"},"name":"s"},"type":"Opaque"}`
		if got := string(WithoutSecrets(secret).JSON()); got != want || string(secret.JSON()) != before {
			t.Errorf("got %s from %s", got, secret.JSON())
		}
	}
	config := mustParse(t, `{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1"}}`)
	if got := string(WithoutSecrets(config).JSON()); got != string(config.JSON()) {
		t.Errorf("got ConfigMap %s, want it unchanged", got)
	}
}

func TestRunJobManifest(t *testing.T) {
	for _, tt := range []struct{ name, job, namespace, want string }{
		{"a Job runs again", `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"own","annotations":{"strategy.spinnaker.io/replace":"true","strategy.spinnaker.io/versioned":"true"}}}`, "",
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"annotations":{"strategy.spinnaker.io/recreate":"true","strategy.spinnaker.io/versioned":"true"},"name":"a","namespace":"own"}}`},
		{"in another namespace", `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"own"}}`, "jobs",
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"annotations":{"strategy.spinnaker.io/recreate":"true"},"name":"a","namespace":"jobs"}}`},
		{"without metadata", `{"apiVersion":"batch/v1","kind":"Job"}`, "", `{"apiVersion":"batch/v1","kind":"Job","metadata":{"annotations":{"strategy.spinnaker.io/recreate":"true"}}}`},
		{"no CronJob", `{"apiVersion":"batch/v1","kind":"CronJob"}`, "", "Only kind of Job is accepted for the Run Job operation."},
		{"a Job of another group", `{"apiVersion":"jobs.example.com/v1","kind":"Job"}`, "", "Only kind of Job is accepted for the Run Job operation."},
		{"metadata of another type", `{"apiVersion":"batch/v1","kind":"Job","metadata":[]}`, "", "the metadata of the Job must be an object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := RunJobManifest(mustParse(t, tt.job), tt.namespace)
			got := string(m.JSON())
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestMissingArtifactsAreNamedOnce checks that accounts are not compared, and that each missing artifact is
// named once.
func TestMissingArtifactsAreNamedOnce(t *testing.T) {
	a := Artifact{Type: "docker/image", Name: "a", Reference: "a:1", ArtifactAccount: "hub"}
	b := a
	b.ArtifactAccount = ""
	if err := CheckBound([]Artifact{a}, []Artifact{b}); err != nil {
		t.Errorf("got %v, want accounts to be ignored", err)
	}
	b.Reference = "a:2"
	if err := CheckBound([]Artifact{a, a}, slices.Repeat([]Artifact{b}, 2)); err == nil || strings.Count(err.Error(), "ArtifactKey(") != 1 {
		t.Errorf("got %v, want one artifact", err)
	}
}

// unavailableCluster is a cluster that cannot be reached.
type unavailableCluster struct{}

var errUnavailable = vedette.Errorf(vedette.Unavailable, "no agent is connected")

func (unavailableCluster) Namespaced(context.Context, string, string) (bool, error) {
	return true, errUnavailable
}

func (unavailableCluster) Get(context.Context, string, string, string, string) (Manifest, error) {
	return nil, errUnavailable
}

func (unavailableCluster) Version(context.Context, Manifest) (vedette.Version, error) {
	return vedette.Version{}, errUnavailable
}

// TestClusterErrorsAreReturned checks that errors of a cluster are returned, and not taken for
// answers.
func TestClusterErrorsAreReturned(t *testing.T) {
	const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","annotations":{"strategy.spinnaker.io/use-source-capacity":"true"}},"spec":{}}`
	for name, d := range map[string]DeployDescription{
		"is it namespaced": {Manifests: []Manifest{mustParse(t, deployment)}, NamespaceOverride: "shop"},
		"which version":    {Manifests: []Manifest{mustParse(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`)}},
		"what capacity":    {Manifests: []Manifest{mustParse(t, deployment)}},
		"which Service":    {Manifests: []Manifest{mustParse(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"p-"}}`)}, Services: []string{"service a"}, EnableTraffic: true},
	} {
		if plan, err := d.Plan(t.Context(), unavailableCluster{}); !errors.Is(err, errUnavailable) || plan.Steps != nil {
			t.Errorf("%s: got %v, %v", name, plan, err)
		}
	}
}
