package manifest

import (
	"strconv"
	"strings"

	"github.com/vedette-io/vedette"
)

// Annotations that control how a manifest is deployed.
const (
	strategyPrefix         = "strategy.spinnaker.io/"
	annotVersioned         = strategyPrefix + "versioned"
	annotMaxVersionHistory = strategyPrefix + "max-version-history"
	annotSourceCapacity    = strategyPrefix + "use-source-capacity"
	annotRecreate          = strategyPrefix + "recreate"
	annotReplace           = strategyPrefix + "replace"
	annotServerSide        = strategyPrefix + "server-side-apply"
)

// strategyOf returns the strategy of a manifest. A manifest without name is always created,
// because there is no live object to look up.
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

// maxVersionHistory returns how many versions to keep, and whether the manifest sets a number.
// An invalid number is ignored.
func maxVersionHistory(m Manifest) (int, bool) {
	n, err := strconv.Atoi(m.Annotation(annotMaxVersionHistory))
	return n, err == nil && n >= 0
}

// isVersioned reports whether each change of a manifest becomes a new object. The manifest
// takes precedence over the stage, and the stage over the kind's default.
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

// priority returns the priority of a kind, or an error if the kind cannot be deployed.
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

// isTrue parses a boolean as Java does: everything except "true" is false.
func isTrue(s string) bool { return strings.EqualFold(s, "true") }
