package manifest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vedette-io/vedette"
)

// DeployDescription is what Clouddriver's deployManifest is asked for.
type DeployDescription struct {
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

	// Report is told each step of Plan in Clouddriver's words, for a history. Nil:
	// nobody is.
	Report func(line string)
}

// reportf tells a step.
func (d DeployDescription) reportf(format string, args ...any) {
	if d.Report != nil {
		d.Report(fmt.Sprintf(format, args...))
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

// ParseDeployDescription reads the description of a deployManifest operation as Orca
// sends it. The rules are the caller's to add.
func ParseDeployDescription(raw []byte) (DeployDescription, error) {
	var d struct {
		Account, Credentials        string
		Moniker                     vedette.Moniker
		Manifest                    Manifest // in use before there were several
		Manifests                   *[]Manifest
		RequiredArtifacts           []*Artifact
		OptionalArtifacts           []*Artifact
		NamespaceOverride, Strategy string
		Versioned                   optionalBool
		EnableArtifactBinding       optionalBool
		EnableTraffic               optionalBool
		SkipSpecTemplateLabels      optionalBool
		AllowNothingSelected        optionalBool
		Services                    []string
		LabelSelectors              Selectors
	}
	if err := decode(raw, &d); err != nil {
		return DeployDescription{}, decodeError("the description of the deployment is", err)
	}
	manifests := []Manifest{d.Manifest}
	if d.Manifests != nil && (len(*d.Manifests) > 0 || d.Manifest == nil) {
		manifests = *d.Manifests
	} else if d.Manifest == nil {
		return DeployDescription{}, vedette.Errorf(vedette.Invalid, "the deployment has no manifests")
	}
	if d.Account == "" {
		d.Account = d.Credentials
	}
	return DeployDescription{
		Account: d.Account, Moniker: d.Moniker, Manifests: nonNilManifests(manifests),
		Required: nonNilArtifacts(d.RequiredArtifacts), Optional: nonNilArtifacts(d.OptionalArtifacts),
		NamespaceOverride: d.NamespaceOverride, Versioned: d.Versioned.value,
		BindArtifacts: d.EnableArtifactBinding.orDefault(true), EnableTraffic: d.EnableTraffic.orDefault(true),
		SkipSpecTemplateLabels: d.SkipSpecTemplateLabels.orDefault(false), AllowNothingSelected: d.AllowNothingSelected.orDefault(false),
		Services: d.Services, Strategy: d.Strategy, LabelSelectors: d.LabelSelectors,
	}, nil
}

// optionalBool is a boolean that may be missing, and may be text, which is what an
// expression in a pipeline makes of it.
type optionalBool struct{ value *bool }

func (f *optionalBool) UnmarshalJSON(raw []byte) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	switch value := value.(type) {
	case bool:
		f.value = &value
	case string:
		if value != "" {
			parsed := isTrue(value)
			f.value = &parsed
		}
	case nil:
	default:
		return vedette.Errorf(vedette.Invalid, "%.50s is neither true nor false", raw)
	}
	return nil
}

func (f optionalBool) orDefault(fallback bool) bool {
	if f.value == nil {
		return fallback
	}
	return *f.value
}

// nonNilArtifacts drops nulls.
func nonNilArtifacts(all []*Artifact) []Artifact {
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
