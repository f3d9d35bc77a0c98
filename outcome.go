package vedette

import (
	"encoding/json"
	"io"
)

// OutcomeState says how an operation ended. The values are part of the API.
type OutcomeState string

// The states of an Outcome.
const (
	Done   OutcomeState = "done"
	Failed OutcomeState = "failed" // it did not take effect, or not wholly, and Message says why
	Lost   OutcomeState = "lost"   // it is unknown whether it took effect
)

// ReasonAlreadyAccepted is the reason where an operation's ID was given out before: this
// is no outcome of the operation that has it.
const ReasonAlreadyAccepted = "AlreadyAccepted"

// ReasonUnknownToAgent is the reason where an agent has no word for an operation, as
// one that is older than its server: it did nothing. Callers of a server are told
// which agent that is, as not implemented.
const ReasonUnknownToAgent = "UnknownToAgent"

// Outcome is the one end of an operation.
type Outcome struct {
	ID    OperationID
	State OutcomeState
	// Status is the HTTP status of the cluster's last answer, or the one that fits
	// where it never was asked.
	Status  int
	Reason  string // the cluster's, "NotFound"; or ours, "Invalid", "Timeout"
	Message string // the cluster's whole text, or ours; empty when done without a word

	// Objects are the objects asked for or written, as JSON, redacted.
	Objects []json.RawMessage
	// Keys name the objects that were written or deleted.
	Keys []Key
	// UIDs are those of the objects that a delete or a prune deleted, or a delete
	// found gone where DeleteArgs.KnownUID named them, one for each of Keys; nil for
	// other verbs. By them a store tells what is gone from what was created under the
	// same name since.
	UIDs []string
	// Unchanged says that an apply found the object as the manifest wants it, and left
	// it at the version that it had. It is false, too, where nobody knows: see
	// ApplyArgs.Compare.
	Unchanged bool
	// Warnings are what API servers said besides their answers, to whichever request
	// of the operation, and whatever became of it: that a version is deprecated, a
	// field unknown, a policy not kept. Each text is there once, in the order in which
	// they came, without the values of a Secret that is written; nil where there is
	// none. They are bounded, and the last one says so where there were more. The
	// history keeps none, and a log that is opened tells none.
	Warnings []string
	// Result is what a verb has to tell that is no object: a history, a status.
	Result json.RawMessage
	// CacheObject is the one object that a verb wrote or read, as its feed tells it, so
	// that it can be stored before the feed does; nil where there is none.
	CacheObject *Object
	// Stream is what logs are read from; nil for other verbs. The caller closes
	// it. It lives until then or until the context of the operation is over.
	Stream io.ReadCloser
}

// Revision is one entry of a workload's history.
type Revision struct {
	Number      int64  `json:"revision"`
	Name        string `json:"name"` // of the ReplicaSet or ControllerRevision that holds it
	ChangeCause string `json:"changeCause,omitempty"`
	Current     bool   `json:"current"`
}

// RolloutStatus is how far a rollout is.
type RolloutStatus struct {
	Done    bool   `json:"done"`
	Failed  bool   `json:"failed"` // it will not end by itself
	Message string `json:"message"`
}

// Version is what a manifest becomes.
type Version struct {
	Number int `json:"number"` // 3 for v003
	// Exists says that an object of this version was made from the same manifest.
	Exists bool `json:"exists"`
	// Latest is the name of the newest version that there is; empty where none is.
	Latest string `json:"latest,omitempty"`
}
