package vedette

import "time"

// OperationID names one operation in an installation: a ULID. Sent twice under
// one ID, an operation takes effect once.
type OperationID string

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
)

// Operation is one thing to do in one cluster.
type Operation struct {
	ID       OperationID
	Account  AccountName
	Deadline time.Time // after which nobody waits; zero for the executor's default
	Args     Args      // decide the verb
	// DryRun has the cluster judge what would be changed and change nothing: the
	// outcome tells the object as it would be. Verbs that read take no notice.
	DryRun bool

	User   string // on whose behalf; empty where nobody said. For the history.
	Origin string // what it is a part of: "task 01J…", "vedette apply". For the history.
}

// Idempotent reports whether an operation may be sent again where it is unknown
// whether it took effect. A manifest without a name is none either, which only
// who reads it can tell.
func (o Operation) Idempotent() bool {
	if o.DryRun {
		return true
	}
	switch a := o.Args.(type) {
	case ApplyArgs:
		return a.Strategy != StrategyCreateOnly && a.Strategy != StrategyRecreate
	case PatchArgs:
		return a.Type != JSONPatch
	case UndoArgs:
		return a.Revision > 0
	case RestartArgs:
		return false
	}
	return true
}

// Reads reports whether an operation changes nothing in its cluster.
func (o Operation) Reads() bool {
	switch o.Args.(type) {
	case GetArgs, ListArgs, HistoryArgs, StatusArgs, LogsArgs, EventsArgs, MetricsArgs, DiscoverArgs, RecacheArgs, VersionArgs:
		return true
	}
	return false
}

// Changes reports whether an operation may change something in its cluster:
// neither what reads does, nor a dry run.
func (o Operation) Changes() bool { return !o.DryRun && !o.Reads() }

// Args are the arguments of one verb: one of the *Args types of this package, by
// value.
type Args interface{ Verb() Verb }

// Target names one object as a user does.
type Target struct {
	// Kind in any case, with or without a group: "deployment", "Job.batch", "svc".
	Kind string
	// APIVersion says which version of the kind is meant, "apps/v1"; empty for the
	// one that the cluster prefers.
	APIVersion string
	Namespace  string // empty for cluster-scoped kinds; else "default" is meant
	Name       string
}

// GetTarget returns the target: what all arguments that name one have in common.
func (t Target) GetTarget() Target { return t }

// GetArgs ask for one object, as it is in the cluster now.
type GetArgs struct{ Target }

// ListArgs ask for all objects of a kind, as they are in the cluster now. The
// target has no name; without a namespace all namespaces are meant.
type ListArgs struct {
	Target
	LabelSelector string
	FieldSelector string
}

// Strategy is how a manifest becomes an object.
type Strategy string

// The strategies of an apply.
const (
	StrategyDefault        Strategy = ""                // what the agent's configuration and the manifest's annotations say
	StrategyClientSide     Strategy = "client-side"     // three-way merge with what was applied last
	StrategyServerSide     Strategy = "server-side"     // the API server merges; a field that another manager holds is a conflict
	StrategyForceConflicts Strategy = "force-conflicts" // the same, and takes such fields over
	StrategyReplace        Strategy = "replace"         // put in the place of what is there, or create
	StrategyRecreate       Strategy = "recreate"        // delete, wait until it is gone, apply
	StrategyCreateOnly     Strategy = "create"          // fail where it exists
)

// FieldValidation is what becomes of fields of a manifest that the API server does
// not know.
type FieldValidation string

// The values of FieldValidation.
const (
	FieldValidationDefault FieldValidation = ""       // what the agent's configuration says
	FieldValidationStrict  FieldValidation = "strict" // the manifest is refused
	FieldValidationWarn    FieldValidation = "warn"   // they are dropped, and Outcome.Warnings names them
	FieldValidationIgnore  FieldValidation = "ignore" // they are dropped
)

// ApplyArgs bring one object to what a manifest says. One that has generateName
// and no name is created, whatever the strategy.
type ApplyArgs struct {
	Manifest  []byte // one object, JSON or YAML
	Namespace string // where the manifest names none
	Strategy  Strategy
	Fields    FieldValidation
	// Compare asks that Outcome.Unchanged be true whenever nothing was changed. Where
	// the API server merges, that takes one more request, for the version before.
	Compare bool
}

// PatchType is the language of a patch.
type PatchType string

// The types of a patch.
const (
	StrategicPatch PatchType = "strategic"
	MergePatch     PatchType = "merge"
	JSONPatch      PatchType = "json"
)

// PatchArgs change one object by a patch.
type PatchArgs struct {
	Target
	Type  PatchType // empty for strategic
	Patch []byte    // JSON or YAML
}

// DeleteArgs delete one object by name, or those of Target.Kind that are chosen: by
// selectors, or all of them.
type DeleteArgs struct {
	Target // without a name, a selector or All must be there; with one, neither
	// LabelSelector and FieldSelector choose what both fit.
	LabelSelector string
	FieldSelector string
	All           bool // chooses all objects of the namespace, without a selector
	AllNamespaces bool // chooses in all namespaces; Target.Namespace does not count
	// Propagation is foreground, background or orphan in any case; empty for
	// background.
	Propagation string
	// GraceSeconds that pods have to end; nil for what the object says.
	GraceSeconds *int64
	// MissingOK makes the absence of the object no failure.
	MissingOK bool
	NoWait    bool // don't wait, until the deadline at most, for the objects to be gone
	// KnownUID is the uid of the object that Name meant when it was last heard of,
	// empty where that is not known. It saves a look at the object before its
	// deletion. Where another object has the name now, that one is looked at, and
	// deleted; so a uid that is out of date costs time, and nothing else.
	KnownUID string
	// OnlyKnown spares any object but the one with KnownUID, as where somebody else
	// may have carried out the same deletion already: the operation then fails with
	// a conflict.
	OnlyKnown bool
}

// PruneArgs delete what was applied once and is applied no more: objects that carry
// kubectl's last-applied annotation and are not among those to keep. Server-side
// applies leave no such annotation, so that their objects stay.
type PruneArgs struct {
	Kinds         []string // "apps/v1/Deployment", "core/v1/Pod"; empty for those that kubectl prunes
	Namespaces    []string // where namespaced kinds are looked for; where there is none, nowhere
	LabelSelector string   // only what it fits
	All           bool     // whatever its labels, without a selector
	Keep          []string // the uids of what is applied
	Propagation   string   // as in DeleteArgs
	GraceSeconds  *int64   // as in DeleteArgs
}

// ScaleArgs set the number of replicas.
type ScaleArgs struct {
	Target
	Replicas int64
}

// RestartArgs roll out the same pods once more.
type RestartArgs struct{ Target }

// PauseArgs stop a rollout.
type PauseArgs struct{ Target }

// ResumeArgs let a paused rollout go on.
type ResumeArgs struct{ Target }

// UndoArgs roll back to an earlier revision: to Revision, or else as many steps
// back as RevisionsBack says, or else to the one before.
type UndoArgs struct {
	Target
	Revision      int64
	RevisionsBack int
}

// HistoryArgs ask for the revisions of a workload.
type HistoryArgs struct{ Target }

// StatusArgs ask how far a rollout is.
type StatusArgs struct{ Target }

// LogsArgs ask for what the containers of a pod wrote.
type LogsArgs struct {
	Target               // of kind Pod; an empty kind means it
	Container     string // empty: all of them where AllContainers is set, else the default one
	AllContainers bool   // init containers included, one after the other unless followed
	Previous      bool   // of the instance before the last restart
	Follow        bool   // until the container ends or the reader has enough
	TailLines     *int64
	SinceSeconds  *int64
	SinceTime     time.Time
	Timestamps    bool
}

// EventsArgs ask for the Events that tell of one object.
type EventsArgs struct{ Target }

// MetricsArgs ask for what the containers of pods use: of one pod, or of those
// that a selector fits.
type MetricsArgs struct {
	Namespace, Name, LabelSelector string
}

// DiscoverArgs ask which kinds the cluster serves.
type DiscoverArgs struct{}

// RecacheArgs ask for one object as it is stored: redacted, with its header.
type RecacheArgs struct{ Target }

// VersionArgs ask which version a manifest becomes, where each change of it makes
// an object of its own beside the earlier ones: web-v000, web-v001. The answer is
// a Version. It is asked for where the cluster is because Secrets are compared
// for it, which don't leave.
type VersionArgs struct {
	Manifest  []byte // JSON; its name is the one without a version
	Namespace string // where the manifest names none
}

// Verb returns get.
func (GetArgs) Verb() Verb { return VerbGet }

// Verb returns list.
func (ListArgs) Verb() Verb { return VerbList }

// Verb returns apply.
func (ApplyArgs) Verb() Verb { return VerbApply }

// Verb returns patch.
func (PatchArgs) Verb() Verb { return VerbPatch }

// Verb returns delete.
func (DeleteArgs) Verb() Verb { return VerbDelete }

// Verb returns prune.
func (PruneArgs) Verb() Verb { return VerbPrune }

// Verb returns scale.
func (ScaleArgs) Verb() Verb { return VerbScale }

// Verb returns restart.
func (RestartArgs) Verb() Verb { return VerbRestart }

// Verb returns pause.
func (PauseArgs) Verb() Verb { return VerbPause }

// Verb returns resume.
func (ResumeArgs) Verb() Verb { return VerbResume }

// Verb returns undo.
func (UndoArgs) Verb() Verb { return VerbUndo }

// Verb returns history.
func (HistoryArgs) Verb() Verb { return VerbHistory }

// Verb returns status.
func (StatusArgs) Verb() Verb { return VerbStatus }

// Verb returns logs.
func (LogsArgs) Verb() Verb { return VerbLogs }

// Verb returns events.
func (EventsArgs) Verb() Verb { return VerbEvents }

// Verb returns metrics.
func (MetricsArgs) Verb() Verb { return VerbMetrics }

// Verb returns discover.
func (DiscoverArgs) Verb() Verb { return VerbDiscover }

// Verb returns recache.
func (RecacheArgs) Verb() Verb { return VerbRecache }

// Verb returns version.
func (VersionArgs) Verb() Verb { return VerbVersion }
