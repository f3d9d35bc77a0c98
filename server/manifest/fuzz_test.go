package manifest

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/vedette-io/vedette"
)

// FuzzPlan checks that every description is planned or rejected as invalid, and that each step
// has an object with a name that can be parsed again. If a description gives no plan, it is
// parsed as manifests.
func FuzzPlan(f *testing.F) {
	files, err := filepath.Glob("testdata/deploy/*/request.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("got no seeds, error %v", err)
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
			var m Manifest
			if err := m.UnmarshalJSON(raw); err != nil {
				requireInvalid(t, err)
				return
			}
			d.Manifests = nonNilManifests([]Manifest{m})
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
		t.Errorf("got %v, want an error of the kind Invalid", err)
	}
}

func checkStep(t *testing.T, s Step) {
	t.Helper()
	raw := s.Manifest.JSON()
	var reparsed Manifest
	if err := reparsed.UnmarshalJSON(raw); err != nil || !bytes.Equal(reparsed.JSON(), raw) {
		t.Errorf("%s: parsing it again got %v, %v", raw, reparsed, err)
	}
	if (s.Name == "") != (s.Strategy == vedette.StrategyCreateOnly) || s.Kind.Name == "" {
		t.Errorf("got a step of %v %q with strategy %q", s.Kind, s.Name, s.Strategy)
	}
	FindArtifacts(s.Kind, s.Manifest)
	Outdated(s.Manifest, []Manifest{s.Manifest})
	WithoutSecrets(s.Manifest)
	if _, err := AttachPatch(s.Manifest, s.Manifest); err != nil {
		requireInvalid(t, err)
	}
}
