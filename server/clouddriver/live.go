package clouddriver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/store"
)

// dispatcher executes operations in clusters.
type dispatcher interface {
	Execute(ctx context.Context, op vedette.Operation) vedette.Outcome
}

// liveTimeout bounds a request to a cluster that a reader waits for. extrasTimeout bounds
// requests for events and metrics, which can be left out.
const (
	liveTimeout   = 10 * time.Second
	extrasTimeout = 2 * time.Second
)

// requestScope is the account and location of a request, and its caller.
type requestScope struct {
	caller   authorize.Caller
	limitKey readlimit.Caller
	account  vedette.AccountName
	location string // a namespace; empty means none
}

// newRequestScope reads the scope of a request. Deck and Orca write "_" for no namespace.
func newRequestScope(r *http.Request, p pathParams) requestScope {
	at := requestScope{caller: authorize.CallerOf(r), limitKey: readlimit.CallerOf(r), account: vedette.AccountName(p["account"]),
		location: p["location"]}
	if at.location == "_" {
		at.location = ""
	}
	return at
}

// doOperation executes an operation in the cluster and returns its outcome. The error has the
// cluster's message and the kind vedette.NotFound if the cluster answered 404 for an object. It is an unavailable
// readError if nobody answered by the deadline of ctx, which must have one, and at once if no agent is connected.
func (a *api) doOperation(ctx context.Context, scope requestScope, args vedette.Args) (vedette.Outcome, error) {
	if a.Dispatch == nil {
		return vedette.Outcome{}, vedette.Errorf(vedette.Unavailable, "this server cannot reach clusters")
	}
	if !a.Connected(scope.account) {
		return vedette.Outcome{}, errNoAgent
	}
	deadline, _ := ctx.Deadline()
	out := a.Dispatch.Execute(ctx,
		vedette.Operation{Account: scope.account, Deadline: deadline, Args: args, User: scope.caller.User, Origin: "read"})
	switch {
	case out.State == vedette.Done:
		return out, nil
	case out.Reason == vedette.ReasonKindNotServed:
		return out, &readError{message: out.Message, unknownKind: true}
	case out.State == vedette.Failed && out.Status == http.StatusNotFound:
		return out, vedette.Errorf(vedette.NotFound, "%s", orDefault(out.Message, out.Reason))
	case out.State == vedette.Lost, out.Status == http.StatusServiceUnavailable, out.Status == http.StatusGatewayTimeout:
		return out, &readError{message: orDefault(out.Message, out.Reason), unavailable: true}
	}
	return out, vedette.Errorf(vedette.Unavailable, "%s", orDefault(out.Message, orDefault(out.Reason, "the agent gave no reason")))
}

// errNoAgent is the error of a question to a cluster that no agent can pass on.
var errNoAgent = &readError{message: "no agent is connected for this account, so its cluster cannot be read: try again when one is", unavailable: true}

// getLive reads one object from the cluster.
func (a *api) getLive(ctx context.Context, scope requestScope, kind, name string) (store.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	out, err := a.doOperation(ctx, scope, vedette.GetArgs{Target: vedette.Target{Kind: kind, Namespace: scope.location, Name: name}})
	if err != nil {
		return store.Row{}, err
	}
	if len(out.Objects) != 1 {
		return store.Row{}, vedette.Errorf(vedette.Unavailable, "the agent sent %d objects instead of one", len(out.Objects))
	}
	return newRow(scope.account, out.Objects[0], func(document []byte, v any) error { return exactjson.Unmarshal(document, v, objectLimits) })
}

// listLive reads the objects of a kind from the cluster.
func (a *api) listLive(ctx context.Context, scope requestScope, kind, selector string) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	out, err := a.doOperation(ctx, scope,
		vedette.ListArgs{Target: vedette.Target{Kind: kind, Namespace: scope.location}, LabelSelector: selector})
	return out.Objects, err
}

// newRows returns the rows of objects. Their answer was counted when it arrived; what their labels and annotations
// become is held.
func newRows(ctx context.Context, account vedette.AccountName, held *memory, objects []json.RawMessage) ([]store.Row, error) {
	rows := make([]store.Row, len(objects))
	for i, raw := range objects {
		var err error
		rows[i], err = newRow(account, raw, func(document []byte, v any) error { return held.decode(ctx, document, v) })
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// newRow returns the row that the store would have of an object, with the fields that this
// package uses.
func newRow(account vedette.AccountName, raw []byte, decode func(document []byte, v any) error) (store.Row, error) {
	var m struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name              string            `json:"name"`
			Namespace         string            `json:"namespace"`
			UID               string            `json:"uid"`
			ResourceVersion   string            `json:"resourceVersion"`
			CreationTimestamp *time.Time        `json:"creationTimestamp"`
			Labels            map[string]string `json:"labels"`
			Annotations       map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := decode(raw, &m); err != nil {
		return store.Row{}, fmt.Errorf("read an object of account %s: %w", account, err)
	}
	group, _, ok := strings.Cut(m.APIVersion, "/")
	if !ok {
		group = ""
	}
	row := store.Row{Account: account, Object: vedette.Object{
		Key: vedette.Key{Kind: vedette.Kind{Group: group, Name: m.Kind}, Namespace: m.Metadata.Namespace, Name: m.Metadata.Name},
		UID: m.Metadata.UID, ResourceVersion: m.Metadata.ResourceVersion, APIVersion: m.APIVersion,
		Labels: m.Metadata.Labels, Annotations: m.Metadata.Annotations, Body: raw,
	}}
	if m.Metadata.CreationTimestamp != nil {
		row.Created = m.Metadata.CreationTimestamp.Unix()
	}
	row.Moniker = vedette.MonikerOf(row.Key, row.Annotations)
	return row, nil
}
