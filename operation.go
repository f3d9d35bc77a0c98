package vedette

import "time"

// OperationID identifies one operation in an installation: a ULID. An operation that
// is sent twice under one ID takes effect once.
type OperationID string

// Operation is one thing to do in one cluster.
type Operation struct {
	ID       OperationID
	Account  AccountName
	Deadline time.Time // when callers stop waiting; zero for the executor's default
	Args     Args      // the arguments; their type decides the verb
	// DryRun makes the cluster validate the change without persisting it. The outcome
	// holds the object as it would be. Read-only verbs ignore it.
	DryRun bool
	// Cluster is the cluster that the operation was accepted for. No other one executes it. It is empty if
	// it is not known yet, or if the server is of an older release.
	Cluster Cluster

	Requester Requester // for the history
	Origin    string    // what the operation belongs to: "task 01J…", "vedette apply". For the history.

	// Digest tells the operation from others with its ID. It does not reveal documents, and stays on the server. It
	// is empty if the ID is not the caller's. For the history.
	Digest string

	RequestID   string // of the request that caused it; empty if unknown. For logs.
	TraceParent string // the span that it belongs to, in the format of W3C's traceparent; empty if it is not traced
}

// Idempotent reports whether the operation may be sent again if it is unknown whether
// it took effect. It cannot see that a manifest has no name, because only the
// executor reads manifests: callers set StrategyCreateOnly for those.
func (o Operation) Idempotent() bool {
	if o.DryRun || o.Args == nil {
		return true
	}
	spec, ok := o.Args.Verb().Spec()
	return !ok || spec.idempotent == nil || spec.idempotent(o.Args)
}

// Reads reports whether the verb is read-only.
func (o Operation) Reads() bool {
	if o.Args == nil {
		return false
	}
	spec, ok := o.Args.Verb().Spec()
	return ok && spec.ReadOnly
}

// Changes reports whether the operation may change something in its cluster. Dry runs
// do not.
func (o Operation) Changes() bool { return !o.DryRun && !o.Reads() }

// Args are the arguments of one verb: one of the *Args types of this package, by
// value.
//
// The fields of these types are the one source of the REST body, the client and the
// protocol. The rest tag is the name of a field in the REST API; "-" keeps a field
// between server and agent. The wire tag is its number in wire/vedette.proto, which is
// generated: numbers must never change. An embedded Target has the number 1. Fields of
// type []byte hold documents: JSON, or a text of YAML. docs/decisions/0055 says how to
// add a field.
type Args interface{ Verb() Verb }

// Target identifies one object in the terms of a user.
type Target struct {
	// Kind in any case, with or without a group: "deployment", "Job.batch", "svc".
	Kind string `rest:"kind" wire:"1"`
	// APIVersion selects a version of the kind, for example "apps/v1"; empty for the
	// version that the cluster prefers.
	APIVersion string `rest:"apiVersion" wire:"2"`
	// Namespace is empty for cluster-scoped kinds. For other kinds, empty means the
	// namespace of the account's kubeconfig context, or "default".
	Namespace string `rest:"namespace" query:"namespace" wire:"3"`
	Name      string `rest:"name" query:"pod" wire:"4"`
}

// GetTarget returns the target. Arguments that embed a Target inherit it.
func (t Target) GetTarget() Target { return t }

// TargetOf returns the target of arguments, or the zero Target if they have none.
func TargetOf(args Args) Target {
	if targeted, ok := args.(interface{ GetTarget() Target }); ok {
		return targeted.GetTarget()
	}
	return Target{}
}

// GetArgs are the arguments of get, which reads one object from the cluster.
type GetArgs struct{ Target }

// ListArgs are the arguments of list, which reads all objects of a kind from the
// cluster. The target has no name. Without a namespace, all namespaces are listed.
type ListArgs struct {
	Target
	LabelSelector string `rest:"labelSelector" wire:"2"`
	FieldSelector string `rest:"fieldSelector" wire:"3"`
}

// Strategy is how a manifest becomes an object.
type Strategy string

// The strategies of an apply.
const (
	StrategyDefault        Strategy = ""                // the agent's configuration and the manifest's annotations decide
	StrategyClientSide     Strategy = "client-side"     // three-way merge with the last applied manifest
	StrategyServerSide     Strategy = "server-side"     // the API server merges; a field of another manager is a conflict
	StrategyForceConflicts Strategy = "force-conflicts" // server-side, and takes over fields of other managers
	StrategyReplace        Strategy = "replace"         // update, or create if it does not exist
	StrategyRecreate       Strategy = "recreate"        // delete, wait until it is gone, create
	StrategyCreateOnly     Strategy = "create"          // create; fail if it exists
)

// FieldValidation is how an apply treats fields that the API server does not know.
type FieldValidation string

// The values of FieldValidation.
const (
	FieldValidationDefault FieldValidation = ""       // the agent's configuration decides
	FieldValidationStrict  FieldValidation = "strict" // the manifest is rejected
	FieldValidationWarn    FieldValidation = "warn"   // the fields are dropped, and Outcome.Warnings names them
	FieldValidationIgnore  FieldValidation = "ignore" // the fields are dropped
)

// ApplyArgs are the arguments of apply, which makes one object match a manifest. A
// manifest with generateName and without a name is always created.
type ApplyArgs struct {
	Manifest  []byte          `rest:"manifest" wire:"1"`  // one object, JSON or YAML
	Namespace string          `rest:"namespace" wire:"2"` // if the manifest has none
	Strategy  Strategy        `rest:"strategy" wire:"3"`
	Fields    FieldValidation `rest:"fieldValidation" wire:"5"`
	// Compare makes Outcome.Unchanged reliable. It costs one more request if the API
	// server merges, because the earlier version must be read.
	Compare bool `rest:"compare" wire:"4"`
	// FieldManager is the field manager of a create or replace; empty for kubectl's. Agents of
	// earlier releases ignore it.
	FieldManager string `rest:"fieldManager" wire:"6"`
	// MustExist makes a replace fail if the object does not exist. Agents of earlier releases
	// create it.
	MustExist bool `rest:"mustExist" wire:"7"`
}

// PatchType is the format of a patch.
type PatchType string

// The types of a patch.
const (
	StrategicPatch PatchType = "strategic"
	MergePatch     PatchType = "merge"
	JSONPatch      PatchType = "json"
)

// PatchArgs are the arguments of patch, which changes one object.
type PatchArgs struct {
	Target
	Type  PatchType `rest:"type" wire:"2"`  // empty for strategic
	Patch []byte    `rest:"patch" wire:"3"` // JSON or YAML
	// FieldManager is the field manager of the patch; empty for kubectl's. Agents of earlier
	// releases ignore it.
	FieldManager string `rest:"fieldManager" wire:"4"`
}

// DeleteArgs are the arguments of delete. Without a name, a selector or All is
// required, and several objects of Target.Kind may be deleted. With a name, both must
// be empty.
type DeleteArgs struct {
	Target
	// An object must match both selectors.
	LabelSelector string `rest:"labelSelector" wire:"2"`
	FieldSelector string `rest:"fieldSelector" wire:"8"`
	All           bool   `rest:"all" wire:"9"`            // all objects of the namespace; excludes selectors
	AllNamespaces bool   `rest:"allNamespaces" wire:"10"` // in all namespaces; Target.Namespace is ignored
	// Propagation is foreground, background or orphan in any case; empty for
	// background.
	Propagation string `rest:"propagation" wire:"3"`
	// GraceSeconds is the grace period of pods in seconds; nil for the object's own.
	GraceSeconds *int64 `rest:"graceSeconds" wire:"4"`
	MissingOK    bool   `rest:"missingOk" wire:"5"` // a missing object is not a failure
	NoWait       bool   `rest:"noWait" wire:"6"`    // do not wait for the objects to be gone
	// KnownUID is the last known uid of the named object; empty if unknown. It saves one
	// read before the deletion. A stale uid only costs time: if another object has the
	// name now, that object is read and deleted.
	KnownUID string `rest:"-" wire:"7"`
	// OnlyKnown limits the deletion to the object with KnownUID. It is set if another
	// process may have deleted that object already. If another object has the name now,
	// the operation fails with a conflict.
	OnlyKnown bool `rest:"-" wire:"11"`
}

// PruneArgs are the arguments of prune, which deletes objects that were applied and no
// longer are: those that carry kubectl's last-applied annotation, or have fields that the
// agent's field manager applied server-side, and are not in Keep. The result is a
// PruneResult.
type PruneArgs struct {
	Kinds         []string `rest:"kinds" wire:"1"`         // "apps/v1/Deployment", "core/v1/Pod"; empty for kubectl's list
	Namespaces    []string `rest:"namespaces" wire:"2"`    // where namespaced kinds are pruned; empty for nowhere
	LabelSelector string   `rest:"labelSelector" wire:"3"` // prune only matching objects
	All           bool     `rest:"all" wire:"4"`           // prune regardless of labels; excludes a selector
	Keep          []string `rest:"keep" wire:"5"`          // the uids of the applied objects
	Propagation   string   `rest:"propagation" wire:"6"`   // as in DeleteArgs
	GraceSeconds  *int64   `rest:"graceSeconds" wire:"7"`  // as in DeleteArgs
}

// PruneResult says what a prune left, as JSON in the outcome's Result. An agent of an earlier
// release returns none.
type PruneResult struct {
	// Kinds are the kinds that were searched, as PruneArgs names them.
	Kinds []string `json:"kinds"`
	// Kept are objects that match the selection, are not in PruneArgs.Keep, and stay. Objects
	// that a controller owns are only counted, in Owned.
	Kept []KeptObject `json:"kept,omitempty"`
	// KeptMore is the number of further objects, if there are too many to name.
	KeptMore int `json:"keptMore,omitempty"`
	Owned    int `json:"owned,omitempty"`
}

// KeptObject is an object that a prune leaves, and why.
type KeptObject struct {
	Kind      string `json:"kind"` // with its group: "Deployment.apps"
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
}

// ScaleArgs are the arguments of scale, which sets the number of replicas.
type ScaleArgs struct {
	Target
	Replicas int64 `rest:"replicas" wire:"2"`
}

// RestartArgs are the arguments of restart, which replaces the pods of a workload.
type RestartArgs struct{ Target }

// PauseArgs are the arguments of pause, which pauses a rollout.
type PauseArgs struct{ Target }

// ResumeArgs are the arguments of resume, which resumes a paused rollout.
type ResumeArgs struct{ Target }

// UndoArgs are the arguments of undo, which rolls back to Revision, or else by
// RevisionsBack revisions, or else to the previous revision.
type UndoArgs struct {
	Target
	Revision      int64 `rest:"revision" wire:"2"`
	RevisionsBack int   `rest:"revisionsBack" wire:"3"`
}

// HistoryArgs are the arguments of history, which reads the revisions of a workload.
type HistoryArgs struct{ Target }

// StatusArgs are the arguments of status, which reads the progress of a rollout.
type StatusArgs struct{ Target }

// LogsArgs are the arguments of logs, which reads the logs of a pod's containers.
type LogsArgs struct {
	Target                  // of kind Pod; an empty kind means Pod
	Container     string    `query:"container" wire:"2"`     // empty for all containers if AllContainers is set, else for the default container
	AllContainers bool      `query:"allContainers" wire:"3"` // include init containers; in sequence unless Follow is set
	Previous      bool      `query:"previous" wire:"4"`      // of the instance before the last restart
	Follow        bool      `query:"follow" wire:"5"`        // until the container ends or the reader closes the stream
	TailLines     *int64    `query:"tailLines" wire:"6"`
	SinceSeconds  *int64    `query:"since,duration" wire:"7"`
	SinceTime     time.Time `query:"sinceTime" wire:"8,since_unix_nanos"` // zero for the whole log
	Timestamps    bool      `query:"timestamps" wire:"9"`
}

// EventsArgs are the arguments of events, which reads the Events about one object.
type EventsArgs struct{ Target }

// MetricsArgs are the arguments of metrics, which reads the resource usage of
// containers: of one pod, or of all pods that match a selector.
type MetricsArgs struct {
	Namespace     string `rest:"namespace" wire:"1"`
	Name          string `rest:"name" wire:"2"`
	LabelSelector string `rest:"labelSelector" wire:"3"`
}

// DiscoverArgs are the arguments of discover, which lists the kinds that the cluster
// serves.
type DiscoverArgs struct{}

// RecacheArgs are the arguments of recache, which reads one object in the form in which
// it is stored: redacted, with its header.
type RecacheArgs struct{ Target }

// VersionArgs are the arguments of version, which finds the version of a Spinnaker
// artifact that a manifest becomes: web-v000, web-v001. The result is a Version. The
// agent does it because Secrets are compared, and their data must not leave the
// cluster.
type VersionArgs struct {
	Manifest  []byte `rest:"manifest" wire:"1"`  // JSON; its name has no version
	Namespace string `rest:"namespace" wire:"2"` // if the manifest has none
}

// AccessArgs are the arguments of access, which asks the API server what the agent's
// credentials allow. The result is an AccessResult.
type AccessArgs struct {
	// Target has the kind and maybe the name. An empty namespace means the default one. A kind
	// that the cluster does not serve is asked about as it is written, and "*" means all.
	Target
	Action        string `rest:"action" wire:"2"`        // a verb of Kubernetes, for example "create"; "*" for all
	Subresource   string `rest:"subresource" wire:"3"`   // for example "log"
	Path          string `rest:"path" wire:"4"`          // a URL instead of a kind, for example "/metrics"
	AllNamespaces bool   `rest:"allNamespaces" wire:"5"` // whether it is allowed in all namespaces
	// List returns all that is allowed in the namespace instead.
	List bool `rest:"list" wire:"6"`
}

// AccessResult is the answer of an API server about what is allowed, as JSON in the outcome's
// Result.
type AccessResult struct {
	Allowed  bool     `json:"allowed"`
	Reason   string   `json:"reason,omitempty"`   // why, in the words of the API server
	Error    string   `json:"error,omitempty"`    // why the API server could not decide, or not list all
	Warnings []string `json:"warnings,omitempty"` // about the question, in kubectl's words
	// Rules are set for AccessArgs.List.
	Rules []AccessRule `json:"rules,omitempty"`
	// Incomplete is true if there may be further rules.
	Incomplete bool `json:"incomplete,omitempty"`
}

// AccessRule is something that is allowed.
type AccessRule struct {
	Verbs     []string `json:"verbs"`
	Groups    []string `json:"groups,omitempty"`
	Resources []string `json:"resources,omitempty"`
	Names     []string `json:"names,omitempty"` // of objects; empty for all
	Paths     []string `json:"paths,omitempty"` // URLs that are not resources
}

// SecretPreview is the result of a dry run of an apply to a Secret, as JSON in the outcome's
// Result: how the keys of its data would change, without the data.
type SecretPreview struct {
	Keys map[string]DataChange `json:"keys"`
	// Incomplete is true if the cluster does not record all keys, or there are too many.
	Incomplete bool `json:"incomplete,omitempty"`
}

// DataChange is how a key of a Secret would change.
type DataChange string

// The values of DataChange.
const (
	DataAdded     DataChange = "added"
	DataRemoved   DataChange = "removed"
	DataChanged   DataChange = "changed"
	DataUnchanged DataChange = "unchanged"
)
