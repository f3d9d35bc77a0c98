package operations

import (
	"slices"
	"strings"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/read"
)

// validateArgs checks what the types of the arguments cannot express, and returns the
// arguments in the form in which the agent takes them. Most verbs need no check.
func validateArgs(args vedette.Args) (vedette.Args, error) {
	switch a := args.(type) {
	case vedette.ListArgs:
		return a, checkSelector(a.LabelSelector)
	case vedette.ApplyArgs:
		return validateApply(a)
	case vedette.VersionArgs:
		m, err := parseManifest(a.Manifest)
		a.Manifest = m.raw
		return a, err
	case vedette.PatchArgs:
		return a, checkOneOf("type", a.Type, patchTypes)
	case vedette.DeleteArgs:
		return a, validateDelete(a)
	case vedette.PruneArgs:
		return a, validatePrune(a)
	case vedette.ScaleArgs:
		return a, validateScale(a)
	case vedette.UndoArgs:
		return a, validateUndo(a)
	case vedette.MetricsArgs:
		return a, checkSelector(a.LabelSelector)
	case vedette.AccessArgs:
		return a, validateAccess(a)
	}
	return args, nil
}

// The accepted values, the default first.
var (
	strategies = []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide, vedette.StrategyServerSide,
		vedette.StrategyForceConflicts,
		vedette.StrategyReplace, vedette.StrategyRecreate, vedette.StrategyCreateOnly}
	fieldValidations = []vedette.FieldValidation{vedette.FieldValidationDefault, vedette.FieldValidationStrict, vedette.FieldValidationWarn,
		vedette.FieldValidationIgnore}
	patchTypes   = []vedette.PatchType{"", vedette.StrategicPatch, vedette.MergePatch, vedette.JSONPatch}
	propagations = []string{"", "foreground", "background", "orphan"}
)

// validateApply takes one manifest. A manifest without a name becomes a create, so that
// no component sends it twice.
func validateApply(a vedette.ApplyArgs) (vedette.Args, error) {
	m, err := parseManifest(a.Manifest)
	if err != nil {
		return nil, err
	}
	if err := checkOneOf("strategy", a.Strategy, strategies); err != nil {
		return nil, err
	}
	if err := checkOneOf("fieldValidation", a.Fields, fieldValidations); err != nil {
		return nil, err
	}
	switch {
	case a.MustExist && a.Strategy != vedette.StrategyReplace:
		return nil, vedette.Errorf(vedette.Invalid, "the field mustExist needs the strategy replace")
	case a.FieldManager != "" && a.Strategy != vedette.StrategyReplace && a.Strategy != vedette.StrategyCreateOnly:
		return nil, vedette.Errorf(vedette.Invalid, "the field fieldManager needs the strategy create or replace: the agent's configuration sets that of applies")
	}
	a.Manifest = m.raw
	if m.Metadata.Name == "" && m.Metadata.GenerateName != "" {
		a.Strategy = vedette.StrategyCreateOnly
	}
	return a, nil
}

// validateDelete rejects a delete whose scope is ambiguous.
func validateDelete(a vedette.DeleteArgs) error {
	hasLabels, hasFields := strings.TrimSpace(a.LabelSelector) != "", strings.TrimSpace(a.FieldSelector) != ""
	switch {
	case a.Name == "" && !hasLabels && !hasFields && !a.All:
		return vedette.Errorf(vedette.Invalid,
			"the verb delete needs a name, a labelSelector, a fieldSelector or all: without them it would delete every %.100s", a.Kind)
	case a.Name != "" && (a.LabelSelector != "" || a.FieldSelector != "" || a.All || a.AllNamespaces):
		return vedette.Errorf(vedette.Invalid, "the verb delete takes a name, or labelSelector, fieldSelector, all and allNamespaces; not both")
	case a.All && (hasLabels || hasFields):
		return vedette.Errorf(vedette.Invalid, "the verb delete takes all, or a selector; not both")
	case a.AllNamespaces && a.Namespace != "":
		return vedette.Errorf(vedette.Invalid, "the verb delete takes a namespace or allNamespaces; not both")
	}
	if err := checkSelector(a.LabelSelector); err != nil {
		return err
	}
	return checkPropagation(a.Propagation)
}

func validatePrune(a vedette.PruneArgs) error {
	hasLabels := strings.TrimSpace(a.LabelSelector) != ""
	switch {
	case hasLabels == a.All:
		return vedette.Errorf(vedette.Invalid,
			"the verb prune needs a labelSelector or all, and exactly one of them: it deletes applied objects that are not in keep")
	case slices.Contains(a.Namespaces, ""):
		return vedette.Errorf(vedette.Invalid, "the field namespaces contains an empty name")
	}
	if err := checkSelector(a.LabelSelector); err != nil {
		return err
	}
	return checkPropagation(a.Propagation)
}

func validateScale(a vedette.ScaleArgs) error {
	if a.Replicas < 0 {
		return vedette.Errorf(vedette.Invalid, "the field replicas is %d and can't be negative", a.Replicas)
	}
	return nil
}

func validateUndo(a vedette.UndoArgs) error {
	if a.Revision < 0 || a.RevisionsBack < 0 || a.Revision > 0 && a.RevisionsBack > 0 {
		return vedette.Errorf(vedette.Invalid, "the verb undo takes a positive revision or positive revisionsBack, and only one of them")
	}
	return nil
}

// validateAccess rejects a question that asks for nothing, or for several things.
func validateAccess(a vedette.AccessArgs) error {
	asked := a.Action != "" || a.Kind != "" || a.Name != "" || a.Subresource != "" || a.Path != "" || a.AllNamespaces
	switch {
	case a.List && asked:
		return vedette.Errorf(vedette.Invalid, "the verb access takes list and a namespace, or an action; not both")
	case a.List:
		return nil
	case a.Action == "":
		return vedette.Errorf(vedette.Invalid, "the verb access needs an action, for example create, or list")
	case (a.Kind == "") == (a.Path == ""):
		return vedette.Errorf(vedette.Invalid, "the verb access needs a kind or a path, and exactly one of them")
	case a.Path != "" && (a.Name != "" || a.Namespace != "" || a.Subresource != "" || a.AllNamespaces):
		return vedette.Errorf(vedette.Invalid, "the verb access takes a path, or what selects objects; not both")
	case a.AllNamespaces && a.Namespace != "":
		return vedette.Errorf(vedette.Invalid, "the verb access takes a namespace or allNamespaces; not both")
	}
	return nil
}

func checkPropagation(policy string) error {
	return checkOneOf("propagation", strings.ToLower(policy), propagations)
}

func checkSelector(selector string) error {
	_, err := read.ParseSelector(selector)
	return err
}

func checkOneOf[T ~string](field string, value T, allowed []T) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	names := make([]string, 0, len(allowed))
	for _, a := range allowed[1:] {
		names = append(names, string(a))
	}
	return vedette.Errorf(vedette.Invalid, "the field %s is %.100q and must be one of %s", field, value, strings.Join(names, ", "))
}
