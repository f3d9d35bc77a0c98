package task

import (
	"context"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// runJobOp runs a Job. An earlier Job with the same name is recreated: runJob.
type runJobOp struct {
	commonFields
	Application       lenientString        `json:"application"`
	Namespace         lenientString        `json:"namespace"`
	Manifest          manifest.Manifest    `json:"manifest"`
	RequiredArtifacts []*manifest.Artifact `json:"requiredArtifacts"`
	OptionalArtifacts []*manifest.Artifact `json:"optionalArtifacts"`
}

// check validates only that there is a manifest, like Clouddriver.
func (d *runJobOp) check(v *validation) {
	if d.Manifest == nil {
		v.err = vedette.Errorf(vedette.Invalid, "the description of runJob has no manifest")
	}
}

func (d *runJobOp) run(ctx context.Context, t *opContext) (*Result, error) {
	t.reportf("Running Kubernetes job...")
	m, err := manifest.RunJobManifest(d.Manifest, string(d.Namespace))
	if err != nil {
		return nil, err
	}
	deployment := &deployOp{d.commonFields, manifest.DeployDescription{
		Moniker: vedette.Moniker{App: string(d.Application)}, Manifests: []manifest.Manifest{m},
		Required: nonNilArtifacts(d.RequiredArtifacts), Optional: nonNilArtifacts(d.OptionalArtifacts), BindArtifacts: true, EnableTraffic: true,
	}}
	result, err := deployment.run(ctx, t.withSpec("deployManifest"))
	if err != nil {
		return nil, err
	}
	result.Deployed = result.Names
	return result, nil
}

// withSpec returns the context of another operation in place of this one.
func (t *opContext) withSpec(name string) *opContext {
	other := *t
	if s, err := findOpSpec(name, kubernetes); err == nil {
		other.op.opSpec = s
	}
	return &other
}
