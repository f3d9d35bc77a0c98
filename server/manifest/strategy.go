package manifest

import (
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
)

// The annotations by which a manifest says how it wants to be deployed.
const (
	strategyPrefix         = "strategy.spinnaker.io/"
	annotVersioned         = strategyPrefix + "versioned"
	annotMaxVersionHistory = strategyPrefix + "max-version-history"
	annotSourceCapacity    = strategyPrefix + "use-source-capacity"
	annotRecreate          = strategyPrefix + "recreate"
	annotReplace           = strategyPrefix + "replace"
	annotServerSide        = strategyPrefix + "server-side-apply"
)

// strategyOf says how a manifest is brought to the cluster. One that only the
// cluster can name can't be looked up before, so it is created whatever it asks
// for.
func strategyOf(m Manifest) vedette.Strategy {
	switch {
	case m.HasGenerateName():
		return vedette.StrategyCreateOnly
	case isTrue(m.Annotation(annotRecreate)):
		return vedette.StrategyRecreate
	case isTrue(m.Annotation(annotReplace)):
		return vedette.StrategyReplace
	case isTrue(m.Annotation(annotServerSide)):
		return vedette.StrategyServerSide
	case m.Annotation(annotServerSide) == "force-conflicts":
		return vedette.StrategyForceConflicts
	}
	return vedette.StrategyDefault
}

// maxVersionHistory returns how many versions a manifest wants to be kept, and
// whether it says so. What is no number says nothing.
func maxVersionHistory(m Manifest) (int, bool) {
	n, err := strconv.Atoi(m.Annotation(annotMaxVersionHistory))
	return n, err == nil && n >= 0
}

// isVersioned reports whether each change of a manifest is to be an object of its
// own: the manifest's word goes before the stage's, and that before the custom.
func (d DeployDescription) isVersioned(m Manifest) bool {
	kind := m.Kind()
	switch {
	case m.HasGenerateName():
		return false
	case m.hasAnnotation(annotVersioned):
		return isTrue(m.Annotation(annotVersioned))
	case d.Versioned != nil:
		return *d.Versioned
	}
	if d.Rules.Versioned != nil {
		if versioned, known := d.Rules.Versioned(kind); known {
			return versioned
		}
	}
	t, _ := lookupKindInfo(kind)
	return t.versioned
}

// priority returns when a kind's turn is, or that it can't be deployed.
func (r Rules) priority(kind vedette.Kind) (int, error) {
	if r.Priority != nil {
		if priority, known := r.Priority(kind); known {
			return priority, nil
		}
	}
	t, known := lookupKindInfo(kind)
	switch {
	case !known:
		return unregisteredPriority, nil
	case t.priority != undeployablePriority:
		return t.priority, nil
	case t.name == "event":
		return 0, vedette.Errorf(vedette.Invalid, "Events cannot be deployed.")
	}
	return 0, vedette.Errorf(vedette.Invalid, "Controller revisions cannot be deployed.")
}

// isTrue reads a boolean as Java does: everything but "true" is false.
func isTrue(s string) bool { return strings.EqualFold(s, "true") }
