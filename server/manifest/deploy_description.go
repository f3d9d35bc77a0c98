package manifest

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette"
)

// DeployDescription is the description of Clouddriver's operation deployManifest.
type DeployDescription struct {
	Account   string
	Moniker   vedette.Moniker // an empty cluster means each manifest's own
	Manifests []Manifest      // not changed; may contain lists

	Required []Artifact // the deployment fails unless each of them is bound
	Optional []Artifact // bound if referenced

	NamespaceOverride string // for namespaced kinds; empty keeps the manifest's
	Versioned         *bool  // for manifests without annotation; nil means the kind's default

	BindArtifacts          bool // false binds only artifacts of this deployment
	EnableTraffic          bool // false annotates the services, but pods do not get their labels yet
	SkipSpecTemplateLabels bool // do not label templates

	Services []string // that select the workloads, for example "service web"
	Strategy string   // RED_BLACK, BLUE_GREEN, HIGHLANDER, NONE or empty

	LabelSelectors       Selectors // deploy only matching manifests
	AllowNothingSelected bool      // succeed if none match

	Rules Rules

	// Report is called with each step of Plan in Clouddriver's words, for the history of the
	// task. May be nil.
	Report func(line string)
}

func (d DeployDescription) reportf(format string, args ...any) {
	if d.Report != nil {
		d.Report(fmt.Sprintf(format, args...))
	}
}

// Rules apply to all deployments of an installation or account.
type Rules struct {
	SkipAppLabels   bool   // do not add app.kubernetes.io and sequence labels
	ManagedBySuffix string // suffix of "spinnaker-" in the label managed-by
	MatchNameOnly   bool   // see Binding
	// Versioned and Priority return the setting of a kind, and whether it has one. They may be
	// nil.
	Versioned func(vedette.Kind) (versioned, known bool)
	Priority  func(vedette.Kind) (priority int, known bool)
}

// ParseDeployDescription parses the description of a deployManifest operation as Orca sends
// it. The caller must set the rules.
func ParseDeployDescription(raw []byte) (DeployDescription, error) {
	var d struct {
		Account, Credentials   string
		Moniker                monikerDescription
		Manifest               Manifest // the older, single form
		Manifests              *[]Manifest
		RequiredArtifacts      []*Artifact
		OptionalArtifacts      []*Artifact
		ManifestArtifact       *Artifact // Orca has replaced it by manifests; only its form is checked
		NamespaceOverride      text
		Strategy, Source       *string
		Versioned              OptionalBool
		EnableArtifactBinding  OptionalBool
		EnableTraffic          OptionalBool
		SkipSpecTemplateLabels OptionalBool
		AllowNothingSelected   OptionalBool
		Services               []string
		LabelSelectors         Selectors
	}
	if err := decode(raw, &d); err != nil {
		return DeployDescription{}, decodeError("the description of the deployment is", err)
	}
	strategy, err := parseEnum("strategy", d.Strategy, "RED_BLACK", "BLUE_GREEN", "HIGHLANDER", "NONE")
	if err != nil {
		return DeployDescription{}, err
	}
	if _, err := parseEnum("source", d.Source, "artifact", "text"); err != nil {
		return DeployDescription{}, err
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
		Account: d.Account, Moniker: d.Moniker.moniker(), Manifests: nonNilManifests(manifests),
		Required: nonNilArtifacts(d.RequiredArtifacts), Optional: nonNilArtifacts(d.OptionalArtifacts),
		NamespaceOverride: string(d.NamespaceOverride), Versioned: d.Versioned.value,
		BindArtifacts: d.EnableArtifactBinding.OrDefault(true), EnableTraffic: d.EnableTraffic.OrDefault(true),
		SkipSpecTemplateLabels: d.SkipSpecTemplateLabels.OrDefault(false), AllowNothingSelected: d.AllowNothingSelected.OrDefault(false),
		Services: d.Services, Strategy: strategy, LabelSelectors: d.LabelSelectors,
	}, nil
}

// CheckForm checks what Clouddriver reads of each manifest before it accepts a deployment. Errors do not quote manifests, because
// they can be Secrets.
func CheckForm(all []Manifest) error {
	for i, m := range all {
		meta, hasMetadata := m["metadata"].(object)
		_, hasKind := m["kind"].(string)
		_, hasNamespace := meta["namespace"].(string)
		switch {
		case !hasKind:
			return vedette.Errorf(vedette.Invalid, "Missing required field 'kind' on manifest %d of %d: add it, as a string", i+1, len(all))
		case !hasMetadata:
			return vedette.Errorf(vedette.Invalid, "Missing required field 'metadata' on manifest %d of %d, of kind %.100s: add it, as an object", i+1,
				len(all), m["kind"])
		case !hasNamespace && meta["namespace"] != nil:
			return vedette.Errorf(vedette.Invalid, "metadata.namespace on manifest %d of %d, of kind %.100s, must be a string", i+1, len(all), m["kind"])
		}
	}
	return nil
}

// monikerDescription is the moniker of a description. An empty text becomes an annotation, and a missing one does not.
type monikerDescription struct {
	App, Cluster, Stack, Detail *text
	Sequence                    sequenceNumber
}

func (d *monikerDescription) moniker() vedette.Moniker {
	m := vedette.Moniker{Sequence: d.Sequence.number}
	for _, t := range []struct {
		part vedette.MonikerParts
		from *text
		to   *string
	}{{vedette.AppPart, d.App, &m.App}, {vedette.ClusterPart, d.Cluster, &m.Cluster}, {vedette.StackPart, d.Stack, &m.Stack},
		{vedette.DetailPart, d.Detail, &m.Detail}} {
		switch {
		case t.from == nil:
		case *t.from == "":
			m.Blank |= t.part
		default:
			*t.to = string(*t.from)
		}
	}
	return m
}
func nonNilArtifacts(all []*Artifact) []Artifact {
	var kept []Artifact
	for _, a := range all {
		if a != nil {
			kept = append(kept, *a)
		}
	}
	return kept
}

// Cluster answers a deployment's queries about its cluster. Its errors are returned unchanged.
type Cluster interface {
	// Namespaced reports whether a kind is namespaced. The error is vedette.NotFound if the
	// cluster does not serve the kind.
	Namespaced(ctx context.Context, apiVersion, kind string) (bool, error)
	// Get returns a live object. The error is vedette.NotFound if it does not exist.
	Get(ctx context.Context, apiVersion, kind, namespace, name string) (Manifest, error)
	// Version returns the version that a manifest gets. At this point its name is without
	// version, artifacts are bound, and nothing is annotated. Version must not change m.
	Version(ctx context.Context, m Manifest) (vedette.Version, error)
}
