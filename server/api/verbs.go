package api

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/vedette-io/vedette"
)

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

func listArgs(b operationBody) (vedette.Args, error) {
	return vedette.ListArgs{Target: b.target(), LabelSelector: b.LabelSelector, FieldSelector: b.FieldSelector}, checkSelector(b.LabelSelector)
}

var strategies = []string{string(vedette.StrategyDefault), string(vedette.StrategyClientSide), string(vedette.StrategyServerSide), string(vedette.StrategyForceConflicts),
	string(vedette.StrategyReplace), string(vedette.StrategyRecreate), string(vedette.StrategyCreateOnly)}

var fieldValidations = []string{string(vedette.FieldValidationDefault), string(vedette.FieldValidationStrict), string(vedette.FieldValidationWarn), string(vedette.FieldValidationIgnore)}

// applyArgs takes one manifest. One without a name of its own is called a create,
// so that all on its way know that it must not be done twice.
func applyArgs(b operationBody) (vedette.Args, error) {
	m, err := parseManifest(b.Manifest)
	if err != nil {
		return nil, err
	}
	if err := checkOneOf("strategy", b.Strategy, strategies); err != nil {
		return nil, err
	}
	if err := checkOneOf("fieldValidation", b.FieldValidation, fieldValidations); err != nil {
		return nil, err
	}
	a := vedette.ApplyArgs{Manifest: m.raw, Namespace: b.Namespace, Strategy: vedette.Strategy(b.Strategy), Fields: vedette.FieldValidation(b.FieldValidation), Compare: b.Compare}
	if m.Metadata.Name == "" && m.Metadata.GenerateName != "" {
		a.Strategy = vedette.StrategyCreateOnly
	}
	return a, nil
}

func versionArgs(b operationBody) (vedette.Args, error) {
	m, err := parseManifest(b.Manifest)
	return vedette.VersionArgs{Manifest: m.raw, Namespace: b.Namespace}, err
}

func patchArgs(b operationBody) (vedette.Args, error) {
	a := vedette.PatchArgs{Target: b.target(), Type: vedette.PatchType(b.Type), Patch: b.Patch}
	var text string
	if json.Unmarshal(b.Patch, &text) == nil {
		a.Patch = []byte(text)
	}
	return a, checkOneOf("type", b.Type, []string{"", string(vedette.StrategicPatch), string(vedette.MergePatch), string(vedette.JSONPatch)})
}

func deleteArgs(b operationBody) (vedette.Args, error) {
	a := vedette.DeleteArgs{Target: b.target(), LabelSelector: b.LabelSelector, FieldSelector: b.FieldSelector, All: b.All, AllNamespaces: b.AllNamespaces,
		Propagation: b.Propagation, GraceSeconds: b.GraceSeconds, MissingOK: b.MissingOK, NoWait: b.NoWait}
	if err := checkDeleteArgs(a); err != nil {
		return a, err
	}
	if err := checkSelector(a.LabelSelector); err != nil {
		return a, err
	}
	return a, checkPropagation(a.Propagation)
}

// checkDeleteArgs refuses a delete of which it is not clear what it means.
func checkDeleteArgs(a vedette.DeleteArgs) error {
	hasLabels, hasFields := strings.TrimSpace(a.LabelSelector) != "", strings.TrimSpace(a.FieldSelector) != ""
	switch {
	case a.Name == "" && !hasLabels && !hasFields && !a.All:
		return vedette.Errorf(vedette.Invalid, "the verb delete needs a name, a labelSelector or a fieldSelector, or all: it would delete every %.100s", a.Kind)
	case a.Name != "" && (a.LabelSelector != "" || a.FieldSelector != "" || a.All || a.AllNamespaces):
		return vedette.Errorf(vedette.Invalid, "the verb delete takes a name, or what chooses objects: labelSelector, fieldSelector, all, allNamespaces; not both")
	case a.All && (hasLabels || hasFields):
		return vedette.Errorf(vedette.Invalid, "the verb delete takes all, or a selector, not both")
	case a.AllNamespaces && a.Namespace != "":
		return vedette.Errorf(vedette.Invalid, "the verb delete takes a namespace or allNamespaces, not both")
	}
	return nil
}

func pruneArgs(b operationBody) (vedette.Args, error) {
	a := vedette.PruneArgs{Kinds: b.Kinds, Namespaces: b.Namespaces, LabelSelector: b.LabelSelector, All: b.All, Keep: b.Keep,
		Propagation: b.Propagation, GraceSeconds: b.GraceSeconds}
	hasLabels := strings.TrimSpace(a.LabelSelector) != ""
	switch {
	case hasLabels == a.All:
		return a, vedette.Errorf(vedette.Invalid, "the verb prune takes a labelSelector or all, and one of them must be there: it deletes what was applied and is not in keep")
	case slices.Contains(a.Namespaces, ""):
		return a, vedette.Errorf(vedette.Invalid, "the field namespaces holds an empty name")
	}
	if err := checkSelector(a.LabelSelector); err != nil {
		return a, err
	}
	return a, checkPropagation(a.Propagation)
}

func checkPropagation(policy string) error {
	return checkOneOf("propagation", strings.ToLower(policy), []string{"", "foreground", "background", "orphan"})
}

func scaleArgs(b operationBody) (vedette.Args, error) {
	if b.Replicas < 0 {
		return nil, vedette.Errorf(vedette.Invalid, "replicas is %d and can't be negative", b.Replicas)
	}
	return vedette.ScaleArgs{Target: b.target(), Replicas: b.Replicas}, nil
}

func undoArgs(b operationBody) (vedette.Args, error) {
	if b.Revision < 0 || b.RevisionsBack < 0 || b.Revision > 0 && b.RevisionsBack > 0 {
		return nil, vedette.Errorf(vedette.Invalid, "the verb undo takes a revision or revisionsBack, one of them and no negative one")
	}
	return vedette.UndoArgs{Target: b.target(), Revision: b.Revision, RevisionsBack: b.RevisionsBack}, nil
}

func metricsArgs(b operationBody) (vedette.Args, error) {
	return vedette.MetricsArgs{Namespace: b.Namespace, Name: b.Name, LabelSelector: b.LabelSelector}, checkSelector(b.LabelSelector)
}

func checkSelector(selector string) error {
	if _, err := labels.Parse(selector); err != nil {
		return vedette.Errorf(vedette.Invalid, "the label selector %.200q cannot be read: %w", selector, err)
	}
	return nil
}

func checkOneOf(field, value string, allowed []string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return vedette.Errorf(vedette.Invalid, "the field %s is %.100q and may be %s", field, value, strings.Join(allowed[1:], ", "))
}
