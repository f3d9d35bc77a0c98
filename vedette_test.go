package vedette_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestMonikerFollowsNameAndAnnotations(t *testing.T) {
	seq := func(n int) *int { return &n }
	tests := []struct {
		name        string
		key         vedette.Key
		annotations map[string]string
		want        vedette.Moniker
	}{
		{"a bare name is its own application and cluster", key("Deployment.apps", "web"), nil, vedette.Moniker{App: "web", Cluster: "web"}},
		{"the application ends at the first dash, and no stack is read from a name", key("Deployment.apps", "web-prod-eu-1"), nil,
			vedette.Moniker{App: "web", Cluster: "web-prod-eu-1"}},
		{"a sequence is cut from the cluster", key("ReplicaSet.apps", "web-prod-v003"), nil,
			vedette.Moniker{App: "web", Cluster: "web-prod", Sequence: seq(3)}},
		{"two digits are not a sequence", key("ReplicaSet.apps", "web-v03"), nil, vedette.Moniker{App: "web", Cluster: "web-v03"}},
		{"annotations win over the name", key("Deployment.apps", "web-prod"),
			map[string]string{"moniker.spinnaker.io/application": "shop", "moniker.spinnaker.io/cluster": "deployment web"},
			vedette.Moniker{App: "shop", Cluster: "deployment web"}},
		{"each part has an annotation", key("Deployment.apps", "web-prod"),
			map[string]string{"moniker.spinnaker.io/stack": "test", "moniker.spinnaker.io/detail": "eu"},
			vedette.Moniker{App: "web", Cluster: "web-prod", Stack: "test", Detail: "eu"}},
		{"an object that Spinnaker does not know has a cluster by its name", key("NetworkPolicy.networking.k8s.io", "deny"), nil,
			vedette.Moniker{App: "deny", Cluster: "deny"}},
		{"a ReplicaSet has its Deployment's annotations", key("ReplicaSet.apps", "web-6c9f4"),
			map[string]string{"moniker.spinnaker.io/application": "web", "moniker.spinnaker.io/cluster": "deployment web", "deployment.kubernetes.io/revision": "7"},
			vedette.Moniker{App: "web", Cluster: "deployment web", Sequence: seq(7)}},
		{"a sequence from Spinnaker takes precedence over a revision", key("ReplicaSet.apps", "web-v003-6c9f4"),
			map[string]string{"moniker.spinnaker.io/sequence": "3", "deployment.kubernetes.io/revision": "1"},
			vedette.Moniker{App: "web", Cluster: "web-v003-6c9f4", Sequence: seq(3)}},
		{"the Deployment controller numbers ReplicaSets", key("ReplicaSet.apps", "web"),
			map[string]string{"deployment.kubernetes.io/revision": "7"}, vedette.Moniker{App: "web", Cluster: "web", Sequence: seq(7)}},
		{"and not Deployments", key("Deployment.apps", "web"),
			map[string]string{"deployment.kubernetes.io/revision": "7"}, vedette.Moniker{App: "web", Cluster: "web"}},
		{"Kubernetes' own names belong to system", key("ClusterRole.rbac.authorization.k8s.io", "system:node-proxier"), nil,
			vedette.Moniker{App: "system", Cluster: "system:node-proxier"}},
		{"a name of Kubernetes may have a sequence", key("ClusterRole.rbac.authorization.k8s.io", "system:node-proxier-v012"), nil,
			vedette.Moniker{App: "system", Cluster: "system:node-proxier", Sequence: seq(12)}},
		{"a name with another colon has no parts", key("ClusterRole.rbac.authorization.k8s.io", "cert:manager-v003"), nil, vedette.Moniker{}},
		{"an illegal name keeps its annotations", key("ClusterRole.rbac.authorization.k8s.io", "cert:manager"),
			map[string]string{"moniker.spinnaker.io/application": "cert"}, vedette.Moniker{App: "cert"}},
		{"dots and underscores are letters of an application", key("IPAddress.networking.k8s.io", "10.96.0.1"), nil,
			vedette.Moniker{App: "10.96.0.1", Cluster: "10.96.0.1"}},
		{"six digits are a sequence", key("ReplicaSet.apps", "web-v123456"), nil,
			vedette.Moniker{App: "web", Cluster: "web", Sequence: seq(123456)}},
		{"seven digits are not", key("ReplicaSet.apps", "web-v1234567"), nil, vedette.Moniker{App: "web", Cluster: "web-v1234567"}},
		{"a sign is not a digit", key("ReplicaSet.apps", "web-v+03"), nil, vedette.Moniker{}},
		{"a sequence alone is not a name", key("ReplicaSet.apps", "-v003"), nil, vedette.Moniker{}},
		{"annotations of early versions are JSON", key("ReplicaSet.apps", "shopper-747c8"),
			map[string]string{"moniker.spinnaker.io/application": `"shopper"`, "moniker.spinnaker.io/cluster": `"deployment shopper"`,
				"moniker.spinnaker.io/stack": `"a\u0062"`, "moniker.spinnaker.io/detail": `"`, "moniker.spinnaker.io/sequence": `"3"`},
			vedette.Moniker{App: "shopper", Cluster: "deployment shopper", Stack: "ab", Detail: `"`, Sequence: seq(3)}},
		{"an invalid annotation is not known, and the name does not replace it", key("ReplicaSet.apps", "web-v003"),
			map[string]string{"moniker.spinnaker.io/application": `"a\"`, "moniker.spinnaker.io/stack": `"a\"`, "moniker.spinnaker.io/sequence": "007"},
			vedette.Moniker{Cluster: "web"}},
		{"an empty annotation is the empty text", key("ReplicaSet.apps", "web-v003"),
			map[string]string{"moniker.spinnaker.io/application": "", "moniker.spinnaker.io/cluster": "", "moniker.spinnaker.io/stack": "",
				"moniker.spinnaker.io/detail": "", "moniker.spinnaker.io/sequence": ""},
			vedette.Moniker{Blank: vedette.AppPart | vedette.ClusterPart | vedette.StackPart | vedette.DetailPart}},
		{"and so is the empty text as JSON", key("ReplicaSet.apps", "web-v003"),
			map[string]string{"moniker.spinnaker.io/application": `""`, "moniker.spinnaker.io/cluster": `""`, "moniker.spinnaker.io/stack": `""`,
				"moniker.spinnaker.io/detail": `""`, "moniker.spinnaker.io/sequence": `""`},
			vedette.Moniker{Blank: vedette.AppPart | vedette.ClusterPart | vedette.StackPart | vedette.DetailPart}},
		{"the fraction of a sequence is cut off", key("ReplicaSet.apps", "web"), map[string]string{"moniker.spinnaker.io/sequence": "3.7"},
			vedette.Moniker{App: "web", Cluster: "web", Sequence: seq(3)}},
		{"but not in a JSON string", key("ReplicaSet.apps", "web-v003"), map[string]string{"moniker.spinnaker.io/sequence": `"3.7"`},
			vedette.Moniker{App: "web", Cluster: "web"}},
		{"a sequence has 32 bits", key("ReplicaSet.apps", "web-v003"), map[string]string{"moniker.spinnaker.io/sequence": "2147483648"},
			vedette.Moniker{App: "web", Cluster: "web"}},
		{"and is a number", key("ReplicaSet.apps", "web-v003"), map[string]string{"moniker.spinnaker.io/sequence": "null"},
			vedette.Moniker{App: "web", Cluster: "web"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := vedette.MonikerOf(tt.key, tt.annotations)
			if got.App != tt.want.App || got.Cluster != tt.want.Cluster || got.Stack != tt.want.Stack || got.Detail != tt.want.Detail ||
				got.Blank != tt.want.Blank {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if (got.Sequence == nil) != (tt.want.Sequence == nil) || got.Sequence != nil && *got.Sequence != *tt.want.Sequence {
				t.Errorf("sequence: got %v, want %v", got.Sequence, tt.want.Sequence)
			}
		})
	}
}

func key(kind, name string) vedette.Key {
	return vedette.Key{Kind: vedette.ParseKind(kind), Namespace: "default", Name: name}
}

func TestResourceMatchesEachOfItsNames(t *testing.T) {
	deployments := vedette.Resource{Kind: vedette.Kind{Group: "apps", Name: "Deployment"}, Version: "v1",
		Plural: "deployments", Singular: "deployment", ShortNames: []string{"deploy"}}
	for name, want := range map[string]bool{
		"Deployment": true, "deployment": true, "DEPLOYMENTS": true, "deploy": true, "deployments.apps": true,
		"Deployment.extensions": false, "deployment.": false, "pod": false, "": false,
	} {
		if deployments.Matches(name) != want {
			t.Errorf("Matches(%q): got %v, want %v", name, !want, want)
		}
	}
}

// TestOnlySameVersionsShareADigest checks which objects share a digest: the same version of one object, and no others.
func TestOnlySameVersionsShareADigest(t *testing.T) {
	digests := map[uint64]string{}
	for _, o := range [][4]string{
		{"n", "a", "u1", "1"}, {"n", "a", "u1", "2"}, {"n", "b", "u2", "1"}, {"n", "a", "", "1"}, {"n", "a", "", "2"}, {"n", "b", "", "1"},
		{"", "b", "", "1"}, {"na", "", "", "1"}, {"", "na", "", "1"}, {"n", "a1", "", ""}, {"n", "a", "", ""}, {"", "", "", "1"},
	} {
		d := vedette.Digest(o[0], o[1], o[2], o[3])
		if other, ok := digests[d]; ok {
			t.Errorf("%q has the digest of %s", o, other)
		}
		digests[d] = fmt.Sprintf("%q", o)
	}
	if vedette.Digest("n", "a", "u1", "1") != vedette.Digest("m", "b", "u1", "1") {
		t.Error("an object with a uid: got a digest that depends on its name, want that of older agents and servers")
	}
	if vedette.Digest("n", "a", "u1", "1") != vedette.DigestWithoutName("u1", "1") {
		t.Error("an object with a uid: got another digest than that of older agents and servers")
	}
}

func TestRolesBecomeLowerCase(t *testing.T) {
	p := vedette.Permissions{Read: []string{"Dev"}, Write: []string{"ops"}}
	if err := p.Normalize(); err != nil || p.Read[0] != "dev" {
		t.Errorf("got %v, %v; want roles in lower case", p, err)
	}
	for _, role := range []string{"", " ", "dev ops", "dev\t"} {
		p := vedette.Permissions{Write: []string{role}}
		if err := p.Normalize(); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("role %q: got %v, want an invalid error", role, err)
		}
	}
}

func TestPermissionsAllowMoreThan(t *testing.T) {
	dev, ops := &vedette.Permissions{Read: []string{"dev"}}, &vedette.Permissions{Read: []string{"dev", "ops"}, Write: []string{"ops"}}
	for _, tt := range []struct {
		name      string
		p, others *vedette.Permissions
		want      bool
	}{
		{"everyone is more than some", nil, dev, true},
		{"some is not more than everyone", dev, nil, false},
		{"everyone is not more than everyone", nil, nil, false},
		{"the same is not more", dev, &vedette.Permissions{Read: []string{"dev"}}, false},
		{"another order is not more", &vedette.Permissions{Read: []string{"ops", "dev"}, Write: []string{"ops"}}, ops, false},
		{"one role more", ops, dev, true},
		{"one role less", &vedette.Permissions{Read: []string{"dev"}, Write: []string{"ops"}}, ops, false},
		{"another role", &vedette.Permissions{Read: []string{"qa"}}, dev, true},
		{"a removed list may mean everyone", dev, ops, true},
		{"permissions without roles", &vedette.Permissions{}, dev, true},
	} {
		if tt.p.Sorted().AllowsMoreThan(tt.others.Sorted()) != tt.want {
			t.Errorf("%s: %s compared with %s: got %v, want %v", tt.name, tt.p, tt.others, !tt.want, tt.want)
		}
	}
}

func TestClustersAreToldApart(t *testing.T) {
	withUID := vedette.Cluster{UID: "u1", Host: "https://a", Fingerprint: "AA"}
	withoutUID := vedette.Cluster{Host: "https://10.0.0.1", Fingerprint: "AA"}
	addressOnly := vedette.Cluster{Host: "http://localhost:8001"}
	for _, tt := range []struct {
		name string
		a, b vedette.Cluster
		want bool
	}{
		{"same uid behind a new address and certificate", withUID, vedette.Cluster{UID: "u1", Host: "https://b", Fingerprint: "BB"}, true},
		{"another uid behind the same address and certificate", withUID, vedette.Cluster{UID: "u2", Host: "https://a", Fingerprint: "AA"}, false},
		{"uid hidden, same address and certificate", withUID, vedette.Cluster{Host: "https://a", Fingerprint: "AA"}, true},
		{"uid hidden, same address, another certificate", withUID, vedette.Cluster{Host: "https://a", Fingerprint: "BB"}, false},
		{"uid hidden, same address, certificate unknown", withUID, vedette.Cluster{Host: "https://a"}, false},
		{"uid hidden, same certificate, another address", withUID, vedette.Cluster{Host: "https://b", Fingerprint: "AA"}, false},
		{"both uids hidden, same address and certificate", withoutUID, withoutUID, true},
		{"two clusters seen from within, where all have one address", withoutUID, vedette.Cluster{Host: "https://10.0.0.1", Fingerprint: "BB"}, false},
		{"nothing but an address", addressOnly, addressOnly, false},
		{"nothing at all", vedette.Cluster{}, vedette.Cluster{}, false},
	} {
		if tt.a.Same(tt.b) != tt.want || tt.b.Same(tt.a) != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, !tt.want, tt.want)
		}
	}
}

func TestOnlyRepeatableVerbsAreIdempotent(t *testing.T) {
	for _, tt := range []struct {
		name string
		args vedette.Args
		want bool
	}{
		{"an apply is", vedette.ApplyArgs{}, true},
		{"a create is not", vedette.ApplyArgs{Strategy: vedette.StrategyCreateOnly}, false},
		{"a recreate is not, because it would delete again", vedette.ApplyArgs{Strategy: vedette.StrategyRecreate}, false},
		{"a merge patch is", vedette.PatchArgs{Type: vedette.MergePatch}, true},
		{"a JSON patch is not", vedette.PatchArgs{Type: vedette.JSONPatch}, false},
		{"an undo to a revision is", vedette.UndoArgs{Revision: 3}, true},
		{"an undo by steps is not", vedette.UndoArgs{RevisionsBack: 1}, false},
		{"a restart is not", vedette.RestartArgs{}, false},
		{"a delete is", vedette.DeleteArgs{}, true},
		{"a get is", vedette.GetArgs{}, true},
	} {
		if got := (vedette.Operation{Args: tt.args}).Idempotent(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestVerbsAreComplete checks that each constant of type Verb and each type of arguments
// is in the table of verbs.
func TestVerbsAreComplete(t *testing.T) {
	source, err := os.ReadFile("verb.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := regexp.MustCompile(`(?m)^\tVerb\w+ +Verb = "(\w+)"$`).FindAllSubmatch(source, -1)
	for _, match := range constants {
		spec, ok := vedette.Verb(match[1]).Spec()
		if !ok || spec.Args.Verb() != spec.Verb {
			t.Errorf("the verb %s: got the spec %+v, want one with its arguments", match[1], spec)
		}
	}
	types := regexp.MustCompile(`(?m)^func \((\w+Args)\) Verb\(\)`).FindAllSubmatch(source, -1)
	if n := len(vedette.Verbs()); len(types) != n || len(constants) != n {
		t.Errorf("%d specs for %d verbs and %d types of arguments", n, len(constants), len(types))
	}
}

// TestEveryVerbIsExecuted checks that agent/operate refers to the arguments of each verb. An
// agent without an implementation would answer that it is too old.
func TestEveryVerbIsExecuted(t *testing.T) {
	files, err := filepath.Glob("agent/operate/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source []byte
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, b...)
	}
	for _, spec := range vedette.Verbs() {
		if name := fmt.Sprintf("%T", spec.Args); !bytes.Contains(source, []byte(name)) {
			t.Errorf("agent/operate does not use %s: implement the verb %s", name, spec.Verb)
		}
	}
}

func TestTargetArgsKeepTheTarget(t *testing.T) {
	web := vedette.Target{Kind: "deployment", Name: "web"}
	if got := vedette.TargetArgs(vedette.VerbPause, web); got != (vedette.PauseArgs{Target: web}) || vedette.TargetOf(got) != web {
		t.Errorf("got %#v", got)
	}
	for _, verb := range []vedette.Verb{vedette.VerbScale, vedette.VerbDiscover, vedette.VerbMetrics, "none"} {
		if got := vedette.TargetArgs(verb, web); got != nil {
			t.Errorf("%s: got %#v, want nil", verb, got)
		}
	}
}

// TestManyRolesAreCompared compares more roles than could be compared each with each: an agent may name tens of thousands, and the
// registry compares them while others wait.
func TestManyRolesAreCompared(t *testing.T) {
	all := make([]string, 400_000)
	for i := range all {
		all[i] = fmt.Sprintf("role-%d", i)
	}
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	sorted := func(roles []string) *vedette.Permissions { return (&vedette.Permissions{Read: roles}).Sorted() }
	p, same := sorted(all), sorted(reversed)
	if p.AllowsMoreThan(same) || same.AllowsMoreThan(p) {
		t.Error("the same roles in another order allow more")
	}
	fewer := sorted(reversed[1:])
	if !p.AllowsMoreThan(fewer) || fewer.AllowsMoreThan(p) {
		t.Error("one role more does not allow more")
	}
}
