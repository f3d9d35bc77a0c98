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

	Kind          string          `json:"kind"`
	APIVersion    string          `json:"apiVersion"`
	Namespace     string          `json:"namespace"`
	Name          string          `json:"name"`
	LabelSelector string          `json:"labelSelector"`
	FieldSelector string          `json:"fieldSelector"`
	Manifest      json.RawMessage `json:"manifest"`
	Strategy      string          `json:"strategy"`
	Fields        string          `json:"fieldValidation"`
	Compare       bool            `json:"compare"`
	Type          string          `json:"type"`
	Patch         json.RawMessage `json:"patch"`
	Propagation   string          `json:"propagation"`
	GraceSeconds  *int64          `json:"graceSeconds"`
	MissingOK     bool            `json:"missingOk"`
	NoWait        bool            `json:"noWait"`
	Replicas      int64           `json:"replicas"`
	Revision      int64           `json:"revision"`
	RevisionsBack int             `json:"revisionsBack"`
	DryRun        bool            `json:"dryRun"`
	All           bool            `json:"all"`
	AllNamespaces bool            `json:"allNamespaces"`
	Kinds         []string        `json:"kinds"`
	Namespaces    []string        `json:"namespaces"`
	Keep          []string        `json:"keep"`
}

// verb is what a verb takes, and how its arguments are made.
type verb struct {
	must []string // be there
	may  []string
	args func(operationBody) (vedette.Args, error)
}

func (v verb) fields() []string { return slices.Concat(commonFields, v.must, v.may) }

var (
	commonFields = []string{"account", "verb", "id", "timeout"}
	changeFields = []string{"dryRun"} // of verbs that change something
	oneObject    = []string{"kind", "name"}
	whichObject  = []string{"apiVersion", "namespace"}
)

// verbs are those that answer with a body. Logs are a stream of their own.
var verbs = map[vedette.Verb]verb{
	vedette.VerbGet:     onTarget(func(t vedette.Target) vedette.Args { return vedette.GetArgs{Target: t} }),
	vedette.VerbRestart: changing(onTarget(func(t vedette.Target) vedette.Args { return vedette.RestartArgs{Target: t} })),
	vedette.VerbPause:   changing(onTarget(func(t vedette.Target) vedette.Args { return vedette.PauseArgs{Target: t} })),
	vedette.VerbResume:  changing(onTarget(func(t vedette.Target) vedette.Args { return vedette.ResumeArgs{Target: t} })),
	vedette.VerbHistory: onTarget(func(t vedette.Target) vedette.Args { return vedette.HistoryArgs{Target: t} }),
	vedette.VerbStatus:  onTarget(func(t vedette.Target) vedette.Args { return vedette.StatusArgs{Target: t} }),
	vedette.VerbEvents:  onTarget(func(t vedette.Target) vedette.Args { return vedette.EventsArgs{Target: t} }),
	vedette.VerbRecache: onTarget(func(t vedette.Target) vedette.Args { return vedette.RecacheArgs{Target: t} }),
	vedette.VerbList:    {[]string{"kind"}, append([]string{"labelSelector", "fieldSelector"}, whichObject...), listArgs},
	vedette.VerbApply:   changing(verb{[]string{"manifest"}, []string{"namespace", "strategy", "fieldValidation", "compare"}, applyArgs}),
	vedette.VerbPatch:   changing(verb{append([]string{"patch"}, oneObject...), append([]string{"type"}, whichObject...), patchArgs}),
	vedette.VerbDelete: changing(verb{[]string{"kind"}, append([]string{"name", "labelSelector", "fieldSelector", "all", "allNamespaces", "propagation", "graceSeconds",
		"missingOk", "noWait"}, whichObject...), deleteArgs}),
	vedette.VerbPrune:    changing(verb{nil, []string{"kinds", "namespaces", "labelSelector", "all", "keep", "propagation", "graceSeconds"}, pruneArgs}),
	vedette.VerbScale:    changing(verb{append([]string{"replicas"}, oneObject...), whichObject, scaleArgs}),
	vedette.VerbUndo:     changing(verb{oneObject, append([]string{"revision", "revisionsBack"}, whichObject...), undoArgs}),
	vedette.VerbMetrics:  {nil, []string{"namespace", "name", "labelSelector"}, metricsArgs},
	vedette.VerbDiscover: {nil, nil, func(operationBody) (vedette.Args, error) { return vedette.DiscoverArgs{}, nil }},
	vedette.VerbVersion:  {[]string{"manifest"}, []string{"namespace"}, versionArgs},
}

// changing is a verb that changes something, and can be a dry run.
func changing(v verb) verb {
	v.may = slices.Concat(v.may, changeFields)
	return v
}

func onTarget(make func(vedette.Target) vedette.Args) verb {
	return verb{oneObject, whichObject, func(b operationBody) (vedette.Args, error) { return make(b.target()), nil }}
}

func (b operationBody) target() vedette.Target {
	return vedette.Target{Kind: b.Kind, APIVersion: b.APIVersion, Namespace: b.Namespace, Name: b.Name}
}

// parseOperation reads a request. A field that the verb does not take is refused:
// one with a typing error would do something else than was meant.
func parseOperation(raw []byte) (vedette.Operation, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return vedette.Operation{}, vedette.Errorf(vedette.Invalid, `the operation must be a JSON object such as {"account": "prod", "verb": "get", "kind": "deployment", "name": "web"}%s`, offsetOf(err))
	}
	v, err := verbOf(members)
	if err != nil {
		return vedette.Operation{}, err
	}
	if err := checkFields(members, v); err != nil {
		return vedette.Operation{}, err
	}
	var b operationBody
	if err := json.Unmarshal(raw, &b); err != nil {
		return vedette.Operation{}, mistyped(err)
	}
	if err := b.checkText(); err != nil {
		return vedette.Operation{}, err
	}
	return b.operation(v)
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
				return vedette.Errorf(vedette.Invalid, "the field %s must not hold %w", fields.Type().Field(i).Tag.Get("json"), err)
			}
		}
	}
	return nil
}

func verbOf(members map[string]json.RawMessage) (verb, error) {
	var name vedette.Verb
	if err := json.Unmarshal(members["verb"], &name); err != nil {
		return verb{}, vedette.Errorf(vedette.Invalid, "the operation has no verb: it may be %s", strings.Join(verbNames(), ", "))
	}
	v, ok := verbs[name]
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
	for v := range verbs {
		names = append(names, string(v))
	}
	slices.Sort(names)
	return names
}

func checkFields(members map[string]json.RawMessage, v verb) error {
	var name string
	_ = json.Unmarshal(members["verb"], &name) // it was read before
	known := v.fields()
	for _, field := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(known, field) {
			continue
		}
		hint := nearest.Hint(field, known)
		if hint == "" {
			hint = ": it takes " + strings.Join(known, ", ")
		}
		return vedette.Errorf(vedette.Invalid, "the verb %s takes no %.100q%s", name, field, hint)
	}
	for _, field := range append([]string{"account"}, v.must...) {
		if value := string(members[field]); value == "" || value == `""` || value == "null" {
			return vedette.Errorf(vedette.Invalid, "the verb %s needs the field %s", name, field)
		}
	}
	return nil
}

// mistyped says which field holds something of another sort than it should.
// Values are not repeated, which may be a Secret's.
func mistyped(err error) error {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return vedette.Errorf(vedette.Invalid, "the operation cannot be read: %w", err)
	}
	want := map[string]string{"string": "a text", "bool": "true or false", "int64": "a whole number", "int": "a whole number", "[]string": "a list of texts"}[t.Type.String()]
	return vedette.Errorf(vedette.Invalid, "the field %s must be %s", t.Field, want)
}

func (b operationBody) operation(v verb) (vedette.Operation, error) {
	op := vedette.Operation{Account: vedette.AccountName(b.Account), DryRun: b.DryRun}
	var err error
	if op.Args, err = v.args(b); err != nil {
		return op, err
	}
	if op.ID, err = b.id(op); err != nil {
		return op, err
	}
	op.Deadline, err = deadline(b.Timeout)
	return op, err
}

// id reads the caller's name for an operation. It protects from doing twice, of
// which a verb that reads has no need.
func (b operationBody) id(op vedette.Operation) (vedette.OperationID, error) {
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
	leastTimeout = 100 * time.Millisecond
	mostTimeout  = 24 * time.Hour
)

// deadline reads a timeout. The zero time means the default.
func deadline(timeout string) (time.Time, error) {
	if timeout == "" {
		return time.Time{}, nil
	}
	d, err := time.ParseDuration(timeout)
	if err != nil || d < leastTimeout || d > mostTimeout {
		return time.Time{}, vedette.Errorf(vedette.Invalid, "the timeout %.40q must be a duration such as 30s or 5m, from %v to %v", timeout, leastTimeout, mostTimeout)
	}
	return time.Now().Add(d), nil
}

// offsetOf says where JSON is broken, without repeating it.
func offsetOf(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return ": it is broken at byte " + number(syntax.Offset)
	}
	return ""
}
