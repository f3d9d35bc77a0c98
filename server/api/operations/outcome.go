package operations

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/rest"
)

// Outcome is the outcome of an operation, as callers see it.
type Outcome struct {
	ID      vedette.OperationID  `json:"id"`
	Account vedette.AccountName  `json:"account"`
	Verb    vedette.Verb         `json:"verb"`
	DryRun  bool                 `json:"dryRun,omitempty"` // nothing was changed
	State   vedette.OutcomeState `json:"state"`
	Status  int                  `json:"status"`
	Reason  string               `json:"reason,omitempty"`
	Message string               `json:"message,omitempty"`
	Keys    []objectKey          `json:"keys"`
	Objects []json.RawMessage    `json:"-"` // written separately, one by one
	Result  json.RawMessage      `json:"result,omitempty"`
	// Warnings are the warnings of the cluster's API server.
	Warnings []string `json:"warnings,omitempty"`
	// Unchanged reports that an apply changed nothing.
	Unchanged bool `json:"unchanged,omitempty"`
	// Repeated reports that the outcome is that of an earlier request. Its objects are not
	// kept, and its warnings only for a short time.
	Repeated bool `json:"repeated,omitempty"`
}

// objectKey identifies an object in the operation's account.
type objectKey struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"` // of deleted objects
}

func newOutcome(op vedette.Operation, out vedette.Outcome) Outcome {
	v := Outcome{ID: out.ID, Account: op.Account, Verb: op.Args.Verb(), DryRun: op.DryRun, State: out.State, Status: out.Status,
		Reason: out.Reason, Message: out.Message,
		Keys: []objectKey{}, Objects: []json.RawMessage{}, Unchanged: out.Unchanged, Warnings: out.Warnings}
	if v.ID == "" {
		v.ID = op.ID
	}
	for i, key := range out.Keys {
		k := objectKey{Kind: key.Kind.String(), Namespace: key.Namespace, Name: key.Name}
		if len(out.UIDs) == len(out.Keys) {
			k.UID = out.UIDs[i]
		}
		v.Keys = append(v.Keys, k)
	}
	// Invalid JSON is left out, because it comes from an agent, and the caller must still get
	// the outcome.
	for _, o := range out.Objects {
		if json.Valid(o) {
			v.Objects = append(v.Objects, o)
		}
	}
	if json.Valid(out.Result) {
		v.Result = out.Result
	}
	return v
}

func (v Outcome) asRepeated() Outcome {
	v.Objects, v.Repeated = []json.RawMessage{}, true
	v.Keys = slices.Clone(v.Keys)
	return v
}

// size returns about what the outcome takes in memory without its objects.
func (v Outcome) size() int {
	n := 500 + len(v.Reason) + len(v.Message) + len(v.Result)
	for _, k := range v.Keys {
		n += 64 + len(k.Kind) + len(k.Namespace) + len(k.Name) + len(k.UID)
	}
	for _, w := range v.Warnings {
		n += 16 + len(w)
	}
	return n
}

// asRecorded returns what the history has of the outcome, which is short.
func (v Outcome) asRecorded() Outcome {
	v.Keys = []objectKey{}
	v.Result = nil
	v.Warnings = nil
	v.Reason, v.Message = vedette.CleanText(v.Reason, maxRecordedReason), vedette.CleanText(v.Message, maxRecordedMessage)
	return v
}

const (
	maxRecordedReason  = 255
	maxRecordedMessage = 4096
)

// HTTPStatus returns the HTTP status of the outcome.
func (v Outcome) HTTPStatus() int {
	switch {
	case v.State == vedette.Done:
		return http.StatusOK
	case v.State == vedette.Lost:
		return http.StatusGatewayTimeout
	case v.Status >= 400 && v.Status < 600:
		return v.Status
	}
	return http.StatusInternalServerError
}

// Write writes the outcome as the response to its request.
func (v Outcome) Write(w http.ResponseWriter) error {
	body, err := rest.Encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(v.HTTPStatus())
	// A caller that is gone can request the outcome by the operation's id.
	p := rest.PieceWriter{W: w, B: append(bytes.TrimSuffix(body, []byte("}\n")), `,"objects":[`...)}
	for i, o := range v.Objects {
		if i > 0 {
			p.B = append(p.B, ',')
		}
		p.B = append(p.B, o...)
		v.Objects[i] = nil
		p.Flush(rest.PieceBytes)
	}
	p.B = append(p.B, "]}\n"...)
	p.Flush(0)
	return nil
}
