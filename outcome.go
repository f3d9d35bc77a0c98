package vedette

import (
	"encoding/json"
	"io"
)

// OutcomeState is how an operation ended. The values are part of the API.
type OutcomeState string

// The states of an Outcome.
const (
	Done   OutcomeState = "done"
	Failed OutcomeState = "failed" // it did not take effect, or only in part; Message says why
	Lost   OutcomeState = "lost"   // it is unknown whether it took effect
)

// ReasonAlreadyAccepted is the reason if the ID of an operation is already in use. It
// is not the outcome of the operation that uses it.
const ReasonAlreadyAccepted = "AlreadyAccepted"

// ReasonUnknownToAgent is the reason if an agent does not know an operation because it
// is older than its server. The agent has done nothing. The server names the agent to
// the caller, with the status "not implemented".
const ReasonUnknownToAgent = "UnknownToAgent"

// ReasonKindNotServed is the reason if the cluster does not serve the kind of an
// operation. The status is that of a missing object, 404.
const ReasonKindNotServed = "KindNotServed"

// ReasonNoAccount is the reason if there is no account of that name, or no longer: an account is removed if no agent has served it for
// some time. That says nothing about objects of the cluster, so the status is not that of a missing object, but 503.
const ReasonNoAccount = "NoAccount"

// ReasonAnotherCluster is the reason if the account, or its address, leads to another cluster than the one
// that an operation was accepted for. The other cluster was not changed. The status is 409.
const ReasonAnotherCluster = "AnotherCluster"

// Outcome is the one end of an operation.
type Outcome struct {
	ID    OperationID
	State OutcomeState
	// Status is the HTTP status of the cluster's last response, or a corresponding one
	// if no request was sent.
	Status  int
	Reason  string // the cluster's, for example "NotFound"; or our own, "Invalid", "Timeout"
	Message string // the cluster's full message, or our own; may be empty if done

	// Objects are the objects that were read or written, as redacted JSON.
	Objects []json.RawMessage
	// Keys identify the objects that were written or deleted.
	Keys []Key
	// UIDs are the uids of the objects that a delete or a prune deleted, one for each
	// of Keys; nil for other verbs. They include an object that a delete did not find,
	// if DeleteArgs.KnownUID named it. The store needs them to distinguish a deleted
	// object from a new one with the same name.
	UIDs []string
	// Absent is up to which resourceVersion the object that the operation names is gone; nil if that is not known, or if the object
	// exists. A delete that finds no object needs it: another operation may have deleted the object, and neither its
	// outcome nor the feed may have reached the store.
	Absent *Absence
	// Unchanged is true if an apply is known to have changed nothing. It is false if
	// that is unknown: see ApplyArgs.Compare.
	Unchanged bool
	// Warnings are the warnings of API servers to any request of the operation, whether
	// it succeeded or not: a version is deprecated, a field is unknown, a policy is
	// violated. Each text appears once, in order of arrival, with the values of Secrets
	// masked; nil if there are none. The list is bounded, and its last element says if
	// there were more. The history does not keep warnings, and logs have none.
	Warnings []string
	// Changes are what the operation changed, for the history. They are bounded.
	Changes []ObjectChange
	// Undoes is the operation whose change an undo took back, the last one if there are several; empty if it was not made here. The
	// server sets it.
	Undoes OperationID
	// Result is a result that is not an object, for example a history or a status.
	Result json.RawMessage
	// CacheObject is the one object that was written or read, in the form of its feed,
	// so that it can be stored before the feed reports it; nil if there is none.
	CacheObject *Object
	// Awaited is the version of that object if CacheObject is nil although a feed reports the object: another agent has the account, or the
	// feed reads another version of its kind. Who must read what was written waits until that is stored.
	Awaited *ObjectVersion
	// More has the objects after Objects. They are read from the cluster while the outcome is sent, so that
	// the agent never holds a whole list. It can be read once, and must be closed. Nil if Objects has all;
	// servers never have it.
	More ObjectReader
	// Stream is the log; nil for other verbs. The caller must close it. It ends when it
	// is closed or when the context of the operation ends.
	Stream io.ReadCloser
}

// DropCacheObject removes the object, which can be large, and keeps its version.
func (o *Outcome) DropCacheObject() {
	if o.CacheObject != nil {
		o.Awaited = &ObjectVersion{o.CacheObject.Key, o.CacheObject.ResourceVersion}
		o.CacheObject = nil
	}
}

// ObjectVersion is one version of an object.
type ObjectVersion struct {
	Key     Key
	Version string // resourceVersion
}

// Absence says that objects of a key are gone. Newer ones may exist.
type Absence struct {
	Key Key
	// Version is the resourceVersion at which the cluster had none, or had one that is gone: what is known of the key from this version and
	// older ones is out of date.
	Version string
}

// ObjectReader reads objects one after the other. It is not safe for concurrent use.
type ObjectReader interface {
	// Next returns the next object, which is valid until the next call. The error is io.EOF after the
	// last one. Any other error ends the outcome, which then has failed.
	Next() (json.RawMessage, error)
	// Failure returns the end of the operation for an error of Next.
	Failure(error) Outcome
	Close()
}

// Revision is one entry of a workload's history.
type Revision struct {
	Number      int64  `json:"revision"`
	Name        string `json:"name"` // of the ReplicaSet or ControllerRevision
	ChangeCause string `json:"changeCause,omitempty"`
	Current     bool   `json:"current"`
}

// RolloutStatus is the progress of a rollout.
type RolloutStatus struct {
	Done    bool   `json:"done"`
	Failed  bool   `json:"failed"` // it will not complete without a change
	Message string `json:"message"`
}

// Version is the version of a Spinnaker artifact that a manifest becomes.
type Version struct {
	Number int `json:"number"` // 3 for v003
	// Exists is true if an object of this version was created from the same manifest.
	Exists bool `json:"exists"`
	// Latest is the name of the newest version; empty if there is none.
	Latest string `json:"latest,omitempty"`
}
