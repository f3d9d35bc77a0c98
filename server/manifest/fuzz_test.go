package manifest

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette"
)

// FuzzPlan holds that no description does harm: it is planned, or refused as the
// user's mistake, and what comes out are objects with a name that can be read
// again. Where a description gives no plan, it may be a manifest, or several.
func FuzzPlan(f *testing.F) {
	files, err := filepath.Glob("testdata/deploy/*/request.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		f.Add([]byte(readFile(f, file)))
	}
	f.Add([]byte(`[{"kind":"List","items":[{"kind":"RoleList","items":[{}]}]},null]`))
	f.Add([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":[]},"spec":{"template":{"metadata":7}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := ParseDeployDescription(raw)
		if err != nil {
			requireInvalid(t, err)
			d = DeployDescription{Account: "prod", BindArtifacts: true, EnableTraffic: true, NamespaceOverride: "moved", Services: []string{"service a"}}
			if d.Manifests, err = Parse(raw); err != nil {
				requireInvalid(t, err)
				return
			}
		}
		plan, err := d.Plan(t.Context(), fakeCluster{})
		if err != nil {
			requireInvalid(t, err)
			return
		}
		for _, s := range plan.Steps {
			checkStep(t, s)
		}
	})
}

func requireInvalid(t *testing.T, err error) {
	t.Helper()
	if vedette.KindOf(err) != vedette.Invalid {
		t.Errorf("the error is not the user's: %v", err)
	}
}

func checkStep(t *testing.T, s Step) {
	t.Helper()
	raw := s.Manifest.JSON()
	reparsed, err := Parse(raw)
	if err != nil || len(reparsed) != 1 || !bytes.Equal(reparsed[0].JSON(), raw) {
		t.Errorf("%s was read again as %v, %v", raw, reparsed, err)
	}
	if (s.Name == "") != (s.Strategy == vedette.StrategyCreateOnly) || s.Kind.Name == "" {
		t.Errorf("a step of %v %q by %q", s.Kind, s.Name, s.Strategy)
	}
	FindArtifacts(s.Kind, s.Manifest)
	Outdated(s.Manifest, []Manifest{s.Manifest})
	WithoutSecrets(s.Manifest)
	if _, err := AttachPatch(s.Manifest, s.Manifest); err != nil {
		requireInvalid(t, err)
	}
}
