package operate

import (
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// Policy says whether something is done: always, never, or where a manifest's
// annotation asks for it.
type Policy string

// The values of When, as users write them.
const (
	PolicyAllowed Policy = "allowed" // the zero value means the same
	PolicyAlways  Policy = "always"
	PolicyNever   Policy = "never"
)

// ApplyMode says when manifests are merged by the API server. What is said for all
// kinds wins over what is said for one, and that over annotations, as in the
// predecessor.
type ApplyMode struct {
	Enabled            Policy
	ClearManagedFields Policy
	Kinds              []KindApplyMode
}

// KindApplyMode is the Mode of one kind.
type KindApplyMode struct {
	Kind               string // as a user writes it, "ConfigMap"
	Enabled            Policy
	ClearManagedFields Policy
}

// The annotations that ask for it.
const (
	serverSideAnnotation         = "agent-k8s.armory.io/serverside-apply"         // true, enabled, force-conflicts
	clearManagedFieldsAnnotation = "agent-k8s.armory.io/ssa-clear-managed-fields" // true, enabled
)

// Validate refuses words that mean nothing.
func (m ApplyMode) Validate() error {
	all := []Policy{m.Enabled, m.ClearManagedFields}
	for _, k := range m.Kinds {
		all = append(all, k.Enabled, k.ClearManagedFields)
	}
	for _, policy := range all {
		switch strings.ToLower(string(policy)) {
		case "", string(PolicyAllowed), string(PolicyAlways), string(PolicyNever):
		default:
			return vedette.Errorf(vedette.Invalid, "serverSideApply says %q: write always, never or allowed", policy)
		}
	}
	return nil
}

// resolvePolicies returns what is decided without the manifest, and whether it is.
func resolvePolicies(policies ...Policy) (bool, bool) {
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

func (m ApplyMode) modeOf(r vedette.Resource) KindApplyMode {
	for _, k := range m.Kinds {
		if r.Matches(k.Kind) {
			return k
		}
	}
	return KindApplyMode{}
}

// isDisabledFor reports whether a kind is not to be merged by the API server at all.
func (m ApplyMode) isDisabledFor(r vedette.Resource) bool {
	enabled, isSet := resolvePolicies(m.Enabled, m.modeOf(r).Enabled)
	return isSet && !enabled
}

// applyOptions is how one manifest is applied.
type applyOptions struct {
	serverSide         bool
	force              bool // take over fields of other managers
	clearManagedFields bool // be the only manager
	compare            bool // with the version before
}

// optionsFor decides how a manifest is applied.
func (m ApplyMode) optionsFor(r vedette.Resource, man manifest.Manifest, s vedette.Strategy) applyOptions {
	kind := m.modeOf(r)
	requested := strings.ToLower(man.Annotation(serverSideAnnotation))
	opts := applyOptions{force: s == vedette.StrategyForceConflicts || requested == "force-conflicts"}
	if enabled, isSet := resolvePolicies(m.Enabled, kind.Enabled); isSet {
		opts.serverSide = enabled
	} else {
		opts.serverSide = opts.force || s == vedette.StrategyServerSide || requested == "true" || requested == "enabled"
		if requested == "" && s == vedette.StrategyDefault && prefersServerSide(r.Kind) {
			// Nobody asked: it must not fail where a client-side apply would not.
			opts.serverSide, opts.force = true, true
		}
	}
	if s == vedette.StrategyClientSide {
		opts.serverSide = false
	}
	if enabled, isSet := resolvePolicies(m.ClearManagedFields, kind.ClearManagedFields); isSet {
		opts.clearManagedFields = enabled
	} else {
		switch strings.ToLower(man.Annotation(clearManagedFieldsAnnotation)) {
		case "true", "enabled":
			opts.clearManagedFields = true
		}
	}
	return opts
}

// prefersServerSide reports whether a kind is applied by the API server unless something
// else is said: what does not fit twice into an object (the annotation of a
// client-side apply is a copy) or must not stand in it.
func prefersServerSide(k vedette.Kind) bool {
	return k == secretKind || k == vedette.Kind{Name: "ConfigMap"}
}
