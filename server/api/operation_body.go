package api

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/nearest"
	"github.com/vedette-io/vedette/internal/textcheck"
)

// operationBody is an operation as a request writes it: the arguments of all
// verbs, flat. Which of them a verb takes stands in verbs.
type operationBody struct {
	ID      string `json:"id"`
	Account string `json:"account"`
	Verb    string `json:"verb"`
	Timeout string `json:"timeout"`

	Kind            string          `json:"kind"`
	APIVersion      string          `json:"apiVersion"`
	Namespace       string          `json:"namespace"`
	Name            string          `json:"name"`
	LabelSelector   string          `json:"labelSelector"`
	FieldSelector   string          `json:"fieldSelector"`
	Manifest        json.RawMessage `json:"manifest"`
	Strategy        string          `json:"strategy"`
	FieldValidation string          `json:"fieldValidation"`
	Compare         bool            `json:"compare"`
	Type            string          `json:"type"`
	Patch           json.RawMessage `json:"patch"`
	Propagation     string          `json:"propagation"`
	GraceSeconds    *int64          `json:"graceSeconds"`
	MissingOK       bool            `json:"missingOk"`
	NoWait          bool            `json:"noWait"`
	Replicas        int64           `json:"replicas"`
	Revision        int64           `json:"revision"`
	RevisionsBack   int             `json:"revisionsBack"`
	DryRun          bool            `json:"dryRun"`
	All             bool            `json:"all"`
	AllNamespaces   bool            `json:"allNamespaces"`
	Kinds           []string        `json:"kinds"`
	Namespaces      []string        `json:"namespaces"`
	Keep            []string        `json:"keep"`
}

// verbSpec is what a verb takes, and how its arguments are made.
type verbSpec struct {
	required []string // be there
	optional []string
	newArgs  func(operationBody) (vedette.Args, error)
}

func (v verbSpec) fields() []string { return slices.Concat(commonFields, v.required, v.optional) }

var (
	commonFields         = []string{"account", "verb", "id", "timeout"}
	mutationFields       = []string{"dryRun"} // of verbs that change something
	targetFields         = []string{"kind", "name"}
	optionalTargetFields = []string{"apiVersion", "namespace"}
)

// verbSpecs are those that answer with a body. Logs are a stream of their own.
var verbSpecs = map[vedette.Verb]verbSpec{
	vedette.VerbGet:     targetVerb(func(t vedette.Target) vedette.Args { return vedette.GetArgs{Target: t} }),
	vedette.VerbRestart: mutating(targetVerb(func(t vedette.Target) vedette.Args { return vedette.RestartArgs{Target: t} })),
	vedette.VerbPause:   mutating(targetVerb(func(t vedette.Target) vedette.Args { return vedette.PauseArgs{Target: t} })),
	vedette.VerbResume:  mutating(targetVerb(func(t vedette.Target) vedette.Args { return vedette.ResumeArgs{Target: t} })),
	vedette.VerbHistory: targetVerb(func(t vedette.Target) vedette.Args { return vedette.HistoryArgs{Target: t} }),
	vedette.VerbStatus:  targetVerb(func(t vedette.Target) vedette.Args { return vedette.StatusArgs{Target: t} }),
	vedette.VerbEvents:  targetVerb(func(t vedette.Target) vedette.Args { return vedette.EventsArgs{Target: t} }),
	vedette.VerbRecache: targetVerb(func(t vedette.Target) vedette.Args { return vedette.RecacheArgs{Target: t} }),
	vedette.VerbList:    {[]string{"kind"}, append([]string{"labelSelector", "fieldSelector"}, optionalTargetFields...), listArgs},
	vedette.VerbApply:   mutating(verbSpec{[]string{"manifest"}, []string{"namespace", "strategy", "fieldValidation", "compare"}, applyArgs}),
	vedette.VerbPatch:   mutating(verbSpec{append([]string{"patch"}, targetFields...), append([]string{"type"}, optionalTargetFields...), patchArgs}),
	vedette.VerbDelete: mutating(verbSpec{[]string{"kind"}, append([]string{"name", "labelSelector", "fieldSelector", "all", "allNamespaces", "propagation", "graceSeconds",
		"missingOk", "noWait"}, optionalTargetFields...), deleteArgs}),
	vedette.VerbPrune:    mutating(verbSpec{nil, []string{"kinds", "namespaces", "labelSelector", "all", "keep", "propagation", "graceSeconds"}, pruneArgs}),
	vedette.VerbScale:    mutating(verbSpec{append([]string{"replicas"}, targetFields...), optionalTargetFields, scaleArgs}),
	vedette.VerbUndo:     mutating(verbSpec{targetFields, append([]string{"revision", "revisionsBack"}, optionalTargetFields...), undoArgs}),
	vedette.VerbMetrics:  {nil, []string{"namespace", "name", "labelSelector"}, metricsArgs},
	vedette.VerbDiscover: {nil, nil, func(operationBody) (vedette.Args, error) { return vedette.DiscoverArgs{}, nil }},
	vedette.VerbVersion:  {[]string{"manifest"}, []string{"namespace"}, versionArgs},
}

// mutating is a verb that changes something, and can be a dry run.
func mutating(v verbSpec) verbSpec {
	v.optional = slices.Concat(v.optional, mutationFields)
	return v
}

func targetVerb(newArgs func(vedette.Target) vedette.Args) verbSpec {
	return verbSpec{targetFields, optionalTargetFields, func(b operationBody) (vedette.Args, error) { return newArgs(b.target()), nil }}
}

func (b operationBody) target() vedette.Target {
	return vedette.Target{Kind: b.Kind, APIVersion: b.APIVersion, Namespace: b.Namespace, Name: b.Name}
}

// parseOperation reads a request. A field that the verb does not take is refused:
// one with a typing error would do something else than was meant.
func parseOperation(raw []byte) (vedette.Operation, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return vedette.Operation{}, vedette.Errorf(vedette.Invalid, `the operation must be a JSON object such as {"account": "prod", "verb": "get", "kind": "deployment", "name": "web"}%s`, syntaxErrorOffset(err))
	}
	v, err := lookupVerb(members)
	if err != nil {
		return vedette.Operation{}, err
	}
	if err := checkFields(members, v); err != nil {
		return vedette.Operation{}, err
	}
	var b operationBody
	if err := json.Unmarshal(raw, &b); err != nil {
		return vedette.Operation{}, fieldTypeError(err)
	}
	if err := b.checkText(); err != nil {
		return vedette.Operation{}, err
	}
	return b.toOperation(v)
}

// checkText refuses control characters, which JSON can escape, in all fields that
// are names or choose by names. Manifests and patches may hold them.
func (b operationBody) checkText() error {
	fields := reflect.ValueOf(b)
	for i := range fields.NumField() {
		var texts []string
		switch value := fields.Field(i).Interface().(type) {
		case string:
			texts = []string{value}
		case []string:
			texts = value
		}
		for _, text := range texts {
			if err := textcheck.Name(text); err != nil {
				return vedette.Errorf(vedette.Invalid, "the field %s must not contain %w", fields.Type().Field(i).Tag.Get("json"), err)
			}
		}
	}
	return nil
}

func lookupVerb(members map[string]json.RawMessage) (verbSpec, error) {
	var name vedette.Verb
	if err := json.Unmarshal(members["verb"], &name); err != nil {
		return verbSpec{}, vedette.Errorf(vedette.Invalid, "the operation has no verb: it may be %s", strings.Join(verbNames(), ", "))
	}
	v, ok := verbSpecs[name]
	switch {
	case name == vedette.VerbLogs:
		return v, vedette.Errorf(vedette.Invalid, "logs are read from GET /vedette/v1/logs")
	case !ok:
		hint := nearest.Hint(string(name), verbNames())
		if hint == "" {
			hint = ": the verbs are " + strings.Join(verbNames(), ", ")
		}
		return v, vedette.Errorf(vedette.Invalid, "there is no verb %.100q%s", name, hint)
	}
	return v, nil
}

func verbNames() []string {
	var names []string
	for v := range verbSpecs {
		names = append(names, string(v))
	}
	slices.Sort(names)
	return names
}

func checkFields(members map[string]json.RawMessage, v verbSpec) error {
	var name string
	_ = json.Unmarshal(members["verb"], &name) // it was read before
	allowed := v.fields()
	for _, field := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(allowed, field) {
			continue
		}
		hint := nearest.Hint(field, allowed)
		if hint == "" {
			hint = ": it takes " + strings.Join(allowed, ", ")
		}
		return vedette.Errorf(vedette.Invalid, "the verb %s takes no %.100q%s", name, field, hint)
	}
	for _, field := range append([]string{"account"}, v.required...) {
		if value := string(members[field]); value == "" || value == `""` || value == "null" {
			return vedette.Errorf(vedette.Invalid, "the verb %s needs the field %s", name, field)
		}
	}
	return nil
}

// fieldTypeError says which field holds something of another sort than it should.
// Values are not repeated, which may be a Secret's.
func fieldTypeError(err error) error {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return vedette.Errorf(vedette.Invalid, "the operation cannot be read: %w", err)
	}
	expected := map[string]string{"string": "a text", "bool": "true or false", "int64": "a whole number", "int": "a whole number", "[]string": "a list of texts"}[t.Type.String()]
	return vedette.Errorf(vedette.Invalid, "the field %s must be %s", t.Field, expected)
}

func (b operationBody) toOperation(v verbSpec) (vedette.Operation, error) {
	op := vedette.Operation{Account: vedette.AccountName(b.Account), DryRun: b.DryRun}
	var err error
	if op.Args, err = v.newArgs(b); err != nil {
		return op, err
	}
	if op.ID, err = b.parseID(op); err != nil {
		return op, err
	}
	op.Deadline, err = parseDeadline(b.Timeout)
	return op, err
}

// parseID reads the caller's name for an operation. It protects from doing twice, of
// which a verb that reads has no need.
func (b operationBody) parseID(op vedette.Operation) (vedette.OperationID, error) {
	if b.ID == "" {
		return "", nil
	}
	if op.Reads() {
		return "", vedette.Errorf(vedette.Invalid, "the verb %s changes nothing and takes no id: ask again as often as you like", op.Args.Verb())
	}
	id, err := ulid.ParseStrict(b.ID)
	if err != nil {
		return "", vedette.Errorf(vedette.Invalid, "the id %.40q is no ULID: make one for each operation, or leave it out", b.ID)
	}
	return vedette.OperationID(id.String()), nil
}

// The least and the most time that an operation may be given.
const (
	minTimeout = 100 * time.Millisecond
	maxTimeout = 24 * time.Hour
)

// parseDeadline reads a timeout. The zero time means the default.
func parseDeadline(timeout string) (time.Time, error) {
	if timeout == "" {
		return time.Time{}, nil
	}
	d, err := time.ParseDuration(timeout)
	if err != nil || d < minTimeout || d > maxTimeout {
		return time.Time{}, vedette.Errorf(vedette.Invalid, "the timeout %.40q must be a duration such as 30s or 5m, from %v to %v", timeout, minTimeout, maxTimeout)
	}
	return time.Now().Add(d), nil
}

// syntaxErrorOffset says where JSON is broken, without repeating it.
func syntaxErrorOffset(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return ": it is broken at byte " + formatInt(syntax.Offset)
	}
	return ""
}
