package task

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
)

// journal is what one operation of a task has asked clusters, and what they have answered. An operation is a function of its
// description and of these answers: if it runs again with the same ones, at another server, it does the same and comes to where it
// was. So every choice that it made, of a version or a revision, is made again as it was.
//
// A change is in the journal before it is sent, with its id.
type journal struct {
	run   string    // a secret of the run, from which the ids of its changes are derived
	began time.Time // when the run began
	op    int       // the operation's place in the task
	steps []step
	used  []bool // by step: it was replayed, or is of this run
}

// step is one question to a cluster, or one change.
type step struct {
	// Asked is a digest of what was asked.
	Asked string `json:"asked"`
	// ID is that of a change; empty if the step reads.
	ID vedette.OperationID `json:"id,omitempty"`
	// KnownUID is the uid of the object that a deletion names, as the store had it.
	KnownUID string `json:"knownUID,omitempty"`
	// Outcome and Namespaced are the answer; both are nil before it has arrived.
	Outcome    *recordedOutcome `json:"outcome,omitempty"`
	Namespaced *bool            `json:"namespaced,omitempty"`
}

// recordedOutcome is what tasks read of an outcome.
type recordedOutcome struct {
	State   vedette.OutcomeState `json:"state"`
	Status  int                  `json:"status,omitempty"`
	Reason  string               `json:"reason,omitempty"`
	Message string               `json:"message,omitempty"`
	Objects []json.RawMessage    `json:"objects,omitempty"`
	Keys    []sentKey            `json:"keys,omitempty"` // nil and empty ones differ
	HasKeys bool                 `json:"hasKeys,omitempty"`
	Result  json.RawMessage      `json:"result,omitempty"`
	// Written is the object that was written, with its version.
	Written        *sentKey `json:"written,omitempty"`
	WrittenVersion string   `json:"writtenVersion,omitempty"`
}

func recordOutcome(out vedette.Outcome) *recordedOutcome {
	r := &recordedOutcome{State: out.State, Status: out.Status, Reason: out.Reason, Message: out.Message, Objects: out.Objects,
		HasKeys: out.Keys != nil, Result: out.Result}
	for _, key := range out.Keys {
		r.Keys = append(r.Keys, sendKey(key))
	}
	if out.CacheObject != nil {
		written := sendKey(out.CacheObject.Key)
		r.Written, r.WrittenVersion = &written, out.CacheObject.ResourceVersion
	}
	return r
}

func (r *recordedOutcome) outcome(id vedette.OperationID) vedette.Outcome {
	out := vedette.Outcome{ID: id, State: r.State, Status: r.Status, Reason: r.Reason, Message: r.Message, Objects: r.Objects,
		Result: r.Result}
	if r.HasKeys {
		out.Keys = []vedette.Key{}
	}
	for _, key := range r.Keys {
		out.Keys = append(out.Keys, key.key())
	}
	if r.Written != nil {
		out.CacheObject = &vedette.Object{Key: r.Written.key(), ResourceVersion: r.WrittenVersion}
	}
	return out
}

// askedArgs returns the digest of an operation in the cluster. Documents are not encoded, because they can be large.
func askedArgs(args vedette.Args) string {
	var document []byte
	switch a := args.(type) {
	case vedette.ApplyArgs:
		document, a.Manifest = a.Manifest, nil
		args = a
	case vedette.VersionArgs:
		document, a.Manifest = a.Manifest, nil
		args = a
	case vedette.PatchArgs:
		document, a.Patch = a.Patch, nil
		args = a
	}
	return askedDigest(string(args.Verb()), args, document)
}

// askedKind returns the digest of the question whether a kind has namespaces.
func askedKind(k vedette.Kind) string { return askedDigest("namespaced", k, nil) }

func askedDigest(what string, asked any, document []byte) string {
	raw, err := json.Marshal(asked)
	if err != nil { // arguments can be encoded
		panic(err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %s", what, len(raw), raw)
	h.Write(document)
	return hex.EncodeToString(h.Sum(nil))
}

// replay returns the index of the first step with a digest that was not replayed yet; -1 if there is none.
func (j *journal) replay(asked string) int {
	for i := range j.steps {
		if !j.used[i] && j.steps[i].Asked == asked {
			j.used[i] = true
			return i
		}
	}
	return -1
}

// hasDiverged reports whether the operation did something else when it ran before: a change of that run was not replayed, and now comes
// another one.
func (j *journal) hasDiverged() bool {
	for i := range j.steps {
		if !j.used[i] && j.steps[i].ID != "" {
			return true
		}
	}
	return false
}

// divergedOutcome is the outcome of a change that is not made because the operation has diverged.
func divergedOutcome() vedette.Outcome {
	return vedette.Outcome{State: vedette.Failed, Status: http.StatusServiceUnavailable, Reason: "Stopped",
		Message: "another server has continued this task and found something else than the server that began it, so it has changed nothing more: " +
			"look at what the history says was done, then run the stage again"}
}

// begin adds a step, and returns its index. A change gets its id.
func (j *journal) begin(asked string, isChange bool) int {
	s := step{Asked: asked}
	if isChange {
		s.ID = j.nextID()
	}
	j.steps, j.used = append(j.steps, s), append(j.used, true)
	return len(j.steps) - 1
}

// nextID derives the id of the next change from the run, the operation, and how many changes came before. A server that continues with a
// copy that lacks some of them finds their ids in the history of operations, and does not repeat them.
func (j *journal) nextID() vedette.OperationID {
	n := 0
	for i := range j.steps {
		if j.steps[i].ID != "" {
			n++
		}
	}
	seed := append([]byte(j.run), 0)
	seed = binary.BigEndian.AppendUint64(seed, uint64(j.op)) //nolint:gosec // not negative
	seed = binary.BigEndian.AppendUint64(seed, uint64(n))    //nolint:gosec // the same
	sum := sha256.Sum256(seed)
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(j.began)) // now can be expressed
	copy(id[6:], sum[:])
	return vedette.OperationID(id.String())
}
