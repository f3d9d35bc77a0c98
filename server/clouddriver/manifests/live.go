package manifests

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/clouddriver/web"
	"github.com/vedette-io/vedette/server/liveobject"
	"github.com/vedette-io/vedette/server/store/read"
)

// liveTimeout bounds a request to a cluster that a reader waits for. extrasTimeout bounds
// requests for events and metrics, which can be left out.
const (
	liveTimeout   = 10 * time.Second
	extrasTimeout = 5 * time.Second
)

// doOperation executes an operation in the cluster and returns its outcome. The error has the
// cluster's message and the kind vedette.NotFound if the cluster answered 404 for an object. It is an unavailable
// readError if nobody answered by the deadline of ctx, which must have one, and at once if no agent is connected.
func (a *api) doOperation(ctx context.Context, scope web.Scope, args vedette.Args) (vedette.Outcome, error) {
	if a.Dispatch == nil {
		return vedette.Outcome{}, vedette.Errorf(vedette.Unavailable, "this server cannot reach clusters")
	}
	if !a.Connected(scope.Account) {
		return vedette.Outcome{}, errNoAgent
	}
	deadline, _ := ctx.Deadline()
	out := a.Dispatch.Execute(ctx,
		vedette.Operation{Account: scope.Account, Deadline: deadline, Args: args, Requester: scope.Caller.Requester, Origin: "read"})
	switch {
	case out.State == vedette.Done:
		return out, nil
	case out.Reason == vedette.ReasonKindNotServed:
		return out, &readError{message: out.Message, unknownKind: true}
	case out.State == vedette.Failed && out.Status == http.StatusNotFound:
		return out, vedette.Errorf(vedette.NotFound, "%s", cmp.Or(out.Message, out.Reason))
	case out.State == vedette.Lost, out.Status == http.StatusServiceUnavailable, out.Status == http.StatusGatewayTimeout:
		return out, &readError{message: cmp.Or(out.Message, out.Reason), unavailable: true}
	}
	return out, vedette.Errorf(vedette.Unavailable, "%s", cmp.Or(out.Message, out.Reason, "the agent gave no reason"))
}

// errNoAgent is the error of a question to a cluster that no agent can pass on.
var errNoAgent = &readError{message: "no agent is connected for this account, so its cluster cannot be read: try again when one is", unavailable: true}

// getLive reads one object from the cluster.
func (a *api) getLive(ctx context.Context, scope web.Scope, kind, name string) (read.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	out, err := a.doOperation(ctx, scope, vedette.GetArgs{Target: vedette.Target{Kind: kind, Namespace: scope.Location, Name: name}})
	if err != nil {
		return read.Row{}, err
	}
	if len(out.Objects) != 1 {
		return read.Row{}, vedette.Errorf(vedette.Unavailable, "the agent sent %d objects instead of one", len(out.Objects))
	}
	return liveobject.Row(scope.Account, out.Objects[0], func(document []byte, v any) error {
		return exactjson.Unmarshal(document, v, web.ObjectLimits)
	})
}

// listLive reads the objects of a kind from the cluster.
func (a *api) listLive(ctx context.Context, scope web.Scope, kind, selector string) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	out, err := a.doOperation(ctx, scope,
		vedette.ListArgs{Target: vedette.Target{Kind: kind, Namespace: scope.Location}, LabelSelector: selector})
	return out.Objects, err
}

// newRows returns the rows of objects. Their answer was counted when it arrived; what their labels and annotations
// become is held.
func newRows(ctx context.Context, account vedette.AccountName, held *web.Memory, objects []json.RawMessage) ([]read.Row, error) {
	rows := make([]read.Row, len(objects))
	for i, raw := range objects {
		var err error
		rows[i], err = liveobject.Row(account, raw, func(document []byte, v any) error { return held.Decode(ctx, document, v) })
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
