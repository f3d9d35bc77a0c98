package vedette

import (
	"reflect"
	"slices"
	"sync"
)

// Verb is what an operation does. The values are part of the API.
type Verb string

// The verbs.
const (
	VerbGet      Verb = "get"
	VerbList     Verb = "list"
	VerbApply    Verb = "apply"
	VerbPatch    Verb = "patch"
	VerbDelete   Verb = "delete"
	VerbPrune    Verb = "prune"
	VerbScale    Verb = "scale"
	VerbRestart  Verb = "restart"
	VerbPause    Verb = "pause"
	VerbResume   Verb = "resume"
	VerbUndo     Verb = "undo"
	VerbHistory  Verb = "history"
	VerbStatus   Verb = "status"
	VerbLogs     Verb = "logs"
	VerbEvents   Verb = "events"
	VerbMetrics  Verb = "metrics"
	VerbDiscover Verb = "discover"
	VerbRecache  Verb = "recache"
	VerbVersion  Verb = "version"
	VerbAccess   Verb = "access"
)

// VerbSpec describes a verb. Together with the type of the verb's arguments it is
// the only source of what the REST API, the protocol and the client accept.
type VerbSpec struct {
	Verb Verb
	Args Args // the zero value of the arguments' type
	// ReadOnly verbs change nothing in the cluster. They take no dry run and no ID.
	ReadOnly bool
	// Streams is true if the outcome is a stream. Such a verb has an endpoint of its own
	// in the REST API.
	Streams bool
	// Required are the fields, by their REST names, that a REST request must set.
	Required []string
	// Excluded are fields that the arguments share with other verbs and that this verb
	// rejects.
	Excluded []string
	// idempotent reports whether doing it twice is the same as doing it once; nil for a
	// verb that always is.
	idempotent func(Args) bool
}

// Verbs returns the specs of all verbs. They are ordered as in the documentation.
func Verbs() []VerbSpec {
	kind, object := []string{"kind"}, []string{"kind", "name"}
	never := func(Args) bool { return false }
	return []VerbSpec{
		{Verb: VerbGet, Args: GetArgs{}, ReadOnly: true, Required: object},
		{Verb: VerbList, Args: ListArgs{}, ReadOnly: true, Required: kind, Excluded: []string{"name"}},
		{Verb: VerbApply, Args: ApplyArgs{}, Required: []string{"manifest"}, idempotent: isIdempotentApply},
		{Verb: VerbPatch, Args: PatchArgs{}, Required: append([]string{"patch"}, object...), idempotent: isIdempotentPatch},
		{Verb: VerbDelete, Args: DeleteArgs{}, Required: kind},
		{Verb: VerbPrune, Args: PruneArgs{}},
		{Verb: VerbScale, Args: ScaleArgs{}, Required: append([]string{"replicas"}, object...)},
		{Verb: VerbRestart, Args: RestartArgs{}, Required: object, idempotent: never},
		{Verb: VerbPause, Args: PauseArgs{}, Required: object},
		{Verb: VerbResume, Args: ResumeArgs{}, Required: object},
		{Verb: VerbUndo, Args: UndoArgs{}, Required: object, idempotent: isIdempotentUndo},
		{Verb: VerbHistory, Args: HistoryArgs{}, ReadOnly: true, Required: object},
		{Verb: VerbStatus, Args: StatusArgs{}, ReadOnly: true, Required: object},
		{Verb: VerbLogs, Args: LogsArgs{}, ReadOnly: true, Streams: true},
		{Verb: VerbEvents, Args: EventsArgs{}, ReadOnly: true, Required: object},
		{Verb: VerbMetrics, Args: MetricsArgs{}, ReadOnly: true},
		{Verb: VerbDiscover, Args: DiscoverArgs{}, ReadOnly: true},
		{Verb: VerbRecache, Args: RecacheArgs{}, ReadOnly: true, Required: object},
		{Verb: VerbVersion, Args: VersionArgs{}, ReadOnly: true, Required: []string{"manifest"}},
		{Verb: VerbAccess, Args: AccessArgs{}, ReadOnly: true},
	}
}

// specs are the specs by verb. They are built once because every operation is
// looked up several times.
var specs = sync.OnceValue(func() map[Verb]VerbSpec {
	m := map[Verb]VerbSpec{}
	for _, spec := range Verbs() {
		m[spec.Verb] = spec
	}
	return m
})

// Spec returns the spec of a verb, and whether there is such a verb.
func (v Verb) Spec() (VerbSpec, bool) {
	spec, ok := specs()[v]
	return spec, ok
}

// TargetArgs returns the arguments of a verb that takes only a target; nil for any other
// verb.
func TargetArgs(verb Verb, target Target) Args {
	spec, ok := verb.Spec()
	if !ok {
		return nil
	}
	t := reflect.TypeOf(spec.Args)
	if t.NumField() != 1 || t.Field(0).Type != reflect.TypeFor[Target]() {
		return nil
	}
	args := reflect.New(t).Elem()
	args.Field(0).Set(reflect.ValueOf(target))
	return args.Interface().(Args)
}

// Excludes reports whether the verb rejects a field of its arguments.
func (s VerbSpec) Excludes(field string) bool { return slices.Contains(s.Excluded, field) }

func isIdempotentApply(args Args) bool {
	a, ok := args.(ApplyArgs)
	return ok && a.Strategy != StrategyCreateOnly && a.Strategy != StrategyRecreate
}

func isIdempotentPatch(args Args) bool {
	a, ok := args.(PatchArgs)
	return ok && a.Type != JSONPatch
}

// isIdempotentUndo reports whether the target revision is fixed: going back a number
// of steps leads to another revision the second time.
func isIdempotentUndo(args Args) bool {
	a, ok := args.(UndoArgs)
	return ok && a.Revision > 0
}

func (GetArgs) Verb() Verb      { return VerbGet }
func (ListArgs) Verb() Verb     { return VerbList }
func (ApplyArgs) Verb() Verb    { return VerbApply }
func (PatchArgs) Verb() Verb    { return VerbPatch }
func (DeleteArgs) Verb() Verb   { return VerbDelete }
func (PruneArgs) Verb() Verb    { return VerbPrune }
func (ScaleArgs) Verb() Verb    { return VerbScale }
func (RestartArgs) Verb() Verb  { return VerbRestart }
func (PauseArgs) Verb() Verb    { return VerbPause }
func (ResumeArgs) Verb() Verb   { return VerbResume }
func (UndoArgs) Verb() Verb     { return VerbUndo }
func (HistoryArgs) Verb() Verb  { return VerbHistory }
func (StatusArgs) Verb() Verb   { return VerbStatus }
func (LogsArgs) Verb() Verb     { return VerbLogs }
func (EventsArgs) Verb() Verb   { return VerbEvents }
func (MetricsArgs) Verb() Verb  { return VerbMetrics }
func (DiscoverArgs) Verb() Verb { return VerbDiscover }
func (RecacheArgs) Verb() Verb  { return VerbRecache }
func (VersionArgs) Verb() Verb  { return VerbVersion }
func (AccessArgs) Verb() Verb   { return VerbAccess }
