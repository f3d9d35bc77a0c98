package apply

import (
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// Policy determines whether something is done: always, never, or if a manifest's annotation
// requests it.
type Policy string

// The values of a Policy, in lower or upper case.
const (
	PolicyAllowed Policy = "allowed" // as the manifest requests; the zero value means the same
	PolicyAlways  Policy = "always"
	PolicyNever   Policy = "never"
)

// Mode determines which manifests the API server merges (server-side apply). The policy for all
// kinds takes precedence over that of one kind, and both over annotations, because the Armory Scale
// Agent, whose configuration this is, does the same.
type Mode struct {
	// `always`, `never` or `allowed`: apply server-side. With `allowed`, ConfigMaps and Secrets are applied
	// server-side, and other kinds client-side, unless the manifest's annotation `agent-k8s.armory.io/serverside-apply` is true.
	Enabled Policy `config:"enabled" default:"allowed" enum:"always,never,allowed"`
	// `always`, `never` or `allowed`: remove managed fields, so that the agent is the only manager. With
	// `allowed`, the annotation `agent-k8s.armory.io/ssa-clear-managed-fields` decides.
	ClearManagedFields Policy `config:"clearManagedFields" default:"allowed" enum:"always,never,allowed"`
	// Removed fields are removed from the object without this help.
	ManifestDefaults string `config:"manifestDefaults,ignored" default:"allowed"`
	// Values for single kinds. They apply if the value above is `allowed`.
	Kinds []KindMode `config:"kinds"`
}

// KindMode is ServerSideApply for one kind.
type KindMode struct {
	// Kind, as in a manifest.
	Kind string `config:"kind"`
	// As serverSideApply.enabled, for this kind.
	Enabled Policy `config:"enabled" default:"allowed" enum:"always,never,allowed"`
	// As serverSideApply.clearManagedFields, for this kind.
	ClearManagedFields Policy `config:"clearManagedFields" default:"allowed" enum:"always,never,allowed"`
	// Removed fields are removed from the object without this help.
	ManifestDefaults string `config:"manifestDefaults,ignored" default:"allowed"`
}

// The annotations with which a manifest requests server-side apply.
const (
	serverSideAnnotation         = "agent-k8s.armory.io/serverside-apply"         // true, enabled, force-conflicts
	clearManagedFieldsAnnotation = "agent-k8s.armory.io/ssa-clear-managed-fields" // true, enabled
)

// spinnakerServerSideAnnotation is Spinnaker's annotation for the same.
const spinnakerServerSideAnnotation = "strategy.spinnaker.io/server-side-apply" // true, force-conflicts

// StrategyOf returns the strategy of applies that a manifest requests by Spinnaker's annotation. A
// server sends the strategy instead with an apply, but not with a creation.
func StrategyOf(m manifest.Manifest) vedette.Strategy {
	switch strings.ToLower(m.Annotation(spinnakerServerSideAnnotation)) {
	case "true":
		return vedette.StrategyServerSide
	case "force-conflicts":
		return vedette.StrategyForceConflicts
	}
	return vedette.StrategyDefault
}

// Validate rejects unknown policies.
func (m Mode) Validate() error {
	all := []Policy{m.Enabled, m.ClearManagedFields}
	for _, k := range m.Kinds {
		all = append(all, k.Enabled, k.ClearManagedFields)
	}
	for _, policy := range all {
		switch strings.ToLower(string(policy)) {
		case "", string(PolicyAllowed), string(PolicyAlways), string(PolicyNever):
		default:
			return vedette.Errorf(vedette.Invalid, "serverSideApply is %q: write always, never or allowed", policy)
		}
	}
	return nil
}

// resolvePolicies returns the decision of the first policy that makes one, and whether any does.
func resolvePolicies(policies ...Policy) (enabled, isSet bool) {
	for _, policy := range policies {
		switch strings.ToLower(string(policy)) {
		case string(PolicyAlways):
			return true, true
		case string(PolicyNever):
			return false, true
		}
	}
	return false, false
}

func (m Mode) modeOf(r vedette.Resource) KindMode {
	for _, k := range m.Kinds {
		if r.Matches(k.Kind) {
			return k
		}
	}
	return KindMode{}
}

// Options are how one manifest is applied.
type Options struct {
	ServerSide         bool
	Force              bool // take over the fields of other managers
	ClearManagedFields bool // become the only manager
}

// OptionsFor decides how a manifest is applied.
func (m Mode) OptionsFor(r vedette.Resource, desired manifest.Manifest, s vedette.Strategy) Options {
	opts := m.serverSideOptions(r, desired, s)
	if enabled, isSet := resolvePolicies(m.ClearManagedFields, m.modeOf(r).ClearManagedFields); isSet {
		opts.ClearManagedFields = enabled
		return opts
	}
	switch strings.ToLower(desired.Annotation(clearManagedFieldsAnnotation)) {
	case "true", "enabled":
		opts.ClearManagedFields = true
	}
	return opts
}

func (m Mode) serverSideOptions(r vedette.Resource, desired manifest.Manifest, s vedette.Strategy) Options {
	requested := strings.ToLower(desired.Annotation(serverSideAnnotation))
	opts := Options{Force: s == vedette.StrategyForceConflicts || requested == "force-conflicts"}
	enabled, isSet := resolvePolicies(m.Enabled, m.modeOf(r).Enabled)
	switch {
	case s == vedette.StrategyClientSide:
		return opts
	case isSet:
		opts.ServerSide = enabled
	default:
		opts.ServerSide = opts.Force || s == vedette.StrategyServerSide || requested == "true" || requested == "enabled"
	}
	if s != vedette.StrategyDefault || isSet && !enabled || opts.ServerSide {
		return opts
	}
	if requested == "" && prefersServerSide(r.Kind) || len(desired.Encode()) > maxAnnotationBytes {
		// Force, because nobody requested a server-side apply, and it must not fail if a
		// client-side apply would succeed.
		opts.ServerSide, opts.Force = true, true
	}
	return opts
}

// maxAnnotationBytes is the limit of all annotations of an object together, 256 KiB, less a
// reserve for the others. A client-side apply stores the manifest in an annotation.
const maxAnnotationBytes = 250 << 10

// prefersServerSide reports whether a kind is applied server-side by default. A client-side apply
// copies the manifest into an annotation: that of a ConfigMap may be too large, and the data of a
// Secret must not be copied.
func prefersServerSide(k vedette.Kind) bool {
	return k == secretKind || k == vedette.Kind{Name: "ConfigMap"}
}
