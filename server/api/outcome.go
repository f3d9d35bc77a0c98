package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/vedette-io/vedette"
)

// outcomeView is the outcome of an operation.
type outcomeView struct {
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

func newOutcomeView(op vedette.Operation, out vedette.Outcome) outcomeView {
	v := outcomeView{ID: out.ID, Account: op.Account, Verb: op.Args.Verb(), DryRun: op.DryRun, State: out.State, Status: out.Status,
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

// asRepeated returns the outcome for a repeated request.
func (v outcomeView) asRepeated() outcomeView {
	v.Objects, v.Repeated = []json.RawMessage{}, true
	v.Keys = slices.Clone(v.Keys)
	return v
}

// httpStatus returns the HTTP status of the outcome.
func (v outcomeView) httpStatus() int {
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

func (v outcomeView) write(w http.ResponseWriter) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(v.httpStatus())
	// A caller that is gone can request the outcome by the operation's id.
	p := pageWriter{w: w, b: append(bytes.TrimSuffix(body, []byte("}\n")), `,"objects":[`...)}
	for i, o := range v.Objects {
		if i > 0 {
			p.b = append(p.b, ',')
		}
		p.b = append(p.b, o...)
		v.Objects[i] = nil
		p.flush(flushSize)
	}
	p.b = append(p.b, "]}\n"...)
	p.flush(0)
	return nil
}
