package manifest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
)

// Deployment is what Clouddriver's deployManifest is asked for.
type Deployment struct {
	Account   string
	Moniker   vedette.Moniker // its cluster is each manifest's own where none is given
	Manifests []Manifest      // left as they are; lists are taken apart

	Required []Artifact // fail where one of them replaces nothing
	Optional []Artifact // may replace something

	NamespaceOverride string // for namespaced kinds; empty: leave them where they are
	Versioned         *bool  // for manifests that don't say themselves; nil: as is the custom of the kind

	BindArtifacts          bool // false: bind only what this deployment makes
	EnableTraffic          bool // false: note the services, but don't have them select the pods yet
	SkipSpecTemplateLabels bool // leave the labels of templates alone

	Services []string // that are to select the workloads: "service web"
	Strategy string   // RED_BLACK, BLUE_GREEN, HIGHLANDER, NONE or empty

	LabelSelectors       Selectors // deploy only what fits
	AllowNothingSelected bool      // that nothing fits is no failure

	Rules Rules

	// Tell is told each step of Plan in Clouddriver's words, for a history. Nil:
	// nobody is.
	Tell func(line string)
}

// tell tells a step.
func (d Deployment) tell(format string, args ...any) {
	if d.Tell != nil {
		d.Tell(fmt.Sprintf(format, args...))
	}
}

// Rules are what an installation or account has decided for all deployments.
type Rules struct {
	SkipAppLabels   bool   // write no app.kubernetes.io and sequence labels
	ManagedBySuffix string // after "spinnaker-" in the label managed-by
	MatchNameOnly   bool   // see Binding
	// Versioned and Priority tell what is set for a kind, and whether something
	// is. They may be nil.
	Versioned func(vedette.Kind) (versioned, known bool)
	Priority  func(vedette.Kind) (priority int, known bool)
}

// ReadDeployment reads the description of a deployManifest operation as Orca
// sends it. The rules are the caller's to add.
func ReadDeployment(raw []byte) (Deployment, error) {
	var d struct {
		Account, Credentials        string
		Moniker                     vedette.Moniker
		Manifest                    Manifest // in use before there were several
		Manifests                   *[]Manifest
		RequiredArtifacts           []*Artifact
		OptionalArtifacts           []*Artifact
		NamespaceOverride, Strategy string
		Versioned                   setting
		EnableArtifactBinding       setting
		EnableTraffic               setting
		SkipSpecTemplateLabels      setting
		AllowNothingSelected        setting
		Services                    []string
		LabelSelectors              Selectors
	}
	if err := decode(raw, &d); err != nil {
		return Deployment{}, notJSON("the description of the deployment is", err)
	}
	manifests := []Manifest{d.Manifest}
	if d.Manifests != nil && (len(*d.Manifests) > 0 || d.Manifest == nil) {
		manifests = *d.Manifests
	} else if d.Manifest == nil {
		return Deployment{}, vedette.Errorf(vedette.Invalid, "the deployment has no manifests")
	}
	if d.Account == "" {
		d.Account = d.Credentials
	}
	return Deployment{
		Account: d.Account, Moniker: d.Moniker, Manifests: present(manifests),
		Required: given(d.RequiredArtifacts), Optional: given(d.OptionalArtifacts),
		NamespaceOverride: d.NamespaceOverride, Versioned: d.Versioned.said,
		BindArtifacts: d.EnableArtifactBinding.or(true), EnableTraffic: d.EnableTraffic.or(true),
		SkipSpecTemplateLabels: d.SkipSpecTemplateLabels.or(false), AllowNothingSelected: d.AllowNothingSelected.or(false),
		Services: d.Services, Strategy: d.Strategy, LabelSelectors: d.LabelSelectors,
	}, nil
}

// setting is a boolean that may be missing, and may be text, which is what an
// expression in a pipeline makes of it.
type setting struct{ said *bool }

func (f *setting) UnmarshalJSON(raw []byte) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	switch value := value.(type) {
	case bool:
		f.said = &value
	case string:
		if value != "" {
			yes := isTrue(value)
			f.said = &yes
		}
	case nil:
	default:
		return vedette.Errorf(vedette.Invalid, "%.50s is neither true nor false", raw)
	}
	return nil
}

func (f setting) or(otherwise bool) bool {
	if f.said == nil {
		return otherwise
	}
	return *f.said
}

// given drops nulls.
func given(all []*Artifact) []Artifact {
	var kept []Artifact
	for _, a := range all {
		if a != nil {
			kept = append(kept, *a)
		}
	}
	return kept
}

// Cluster is what a deployment asks of the cluster that it is for. Errors are
// returned as they are.
type Cluster interface {
	// Namespaced reports whether objects of a kind live in namespaces. A kind that
	// the cluster does not serve is vedette.NotFound.
	Namespaced(ctx context.Context, apiVersion, kind string) (bool, error)
	// Get returns a live object; where there is none, the error is
	// vedette.NotFound.
	Get(ctx context.Context, apiVersion, kind, namespace, name string) (Manifest, error)
	// Version tells which version a manifest becomes. Its name is the one without
	// a version, artifacts are bound, nothing is annotated yet. It must be left as
	// it is.
	Version(ctx context.Context, m Manifest) (vedette.Version, error)
}
