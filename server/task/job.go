package task

import (
	"context"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/manifest"
)

// job runs a Job, anew where it has run before: runJob.
type job struct {
	common
	Application       text                 `json:"application"`
	Namespace         text                 `json:"namespace"`
	Manifest          manifest.Manifest    `json:"manifest"`
	RequiredArtifacts []*manifest.Artifact `json:"requiredArtifacts"`
	OptionalArtifacts []*manifest.Artifact `json:"optionalArtifacts"`
}

// check validates nothing, as in Clouddriver, but for what can't be run at all.
func (d *job) check(v *validation) {
	if d.Manifest == nil {
		v.err = vedette.Errorf(vedette.Invalid, "the description of runJob has no manifest")
	}
}

func (d *job) run(ctx context.Context, t *turn) (*Result, error) {
	t.say("Running Kubernetes job...")
	m, err := manifest.ForRun(d.Manifest, string(d.Namespace))
	if err != nil {
		return nil, err
	}
	inner := &deploy{d.common, manifest.Deployment{
		Moniker: vedette.Moniker{App: string(d.Application)}, Manifests: []manifest.Manifest{m},
		Required: given(d.RequiredArtifacts), Optional: given(d.OptionalArtifacts), BindArtifacts: true, EnableTraffic: true,
	}}
	result, err := inner.run(ctx, t.as("deployManifest"))
	if err != nil {
		return nil, err
	}
	result.Deployed = result.Names
	return result, nil
}

// as returns the turn of another operation in the place of this one.
func (t *turn) as(name string) *turn {
	other := *t
	if s, err := sortOf(name, kubernetes); err == nil {
		other.work.sort = s
	}
	return &other
}
