package api

import (
	"context"
	"net/http"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/liveobject"
	"github.com/vedette-io/vedette/server/store/read"
)

// liveTimeout bounds how long a cluster may take to answer for one object.
const liveTimeout = 10 * time.Second

// writeLive writes an object as its cluster has it, because the store does not know whether it exists. Only the cluster may say
// that it does not.
func (a *api) writeLive(w http.ResponseWriter, r *http.Request, o namedObject, feeds feedsState) error {
	row, err := a.readLive(r, o)
	if kind := vedette.KindOf(err); err != nil && kind != vedette.NotFound {
		return vedette.Errorf(vedette.Unavailable, "it is not known whether %s exists in %s, because %s, and its cluster cannot be asked: %w", o.key,
			o.account.Name, feeds.reason(), err)
	}
	if err != nil {
		return err
	}
	return writeWithFreshness(w, r, freshness{Watermark: timestamp(row.Stored), Feeds: []feedFreshness{}}, appendObject(nil, &row))
}

// reason says why the store does not know all objects.
func (s feedsState) reason() string {
	switch {
	case s.cached:
		return s.problem
	case !s.connected:
		return "no agent is connected for this account"
	}
	return "its agent does not report the kind"
}

func (s feedsState) isLive() bool { return s.cached && s.problem == "" }

func (a *api) readLive(r *http.Request, o namedObject) (read.Row, error) {
	if a.Dispatch == nil {
		return read.Row{}, errNotAsked
	}
	if _, connected := a.Fleet.Freshness(o.account.Name); !connected {
		return read.Row{}, errNoAgent
	}
	ctx, cancel := context.WithTimeout(r.Context(), liveTimeout)
	defer cancel()
	target := vedette.Target{Kind: o.key.Kind.String(), Namespace: o.key.Namespace, Name: o.key.Name}
	if o.kind.requested != "" {
		target.APIVersion = o.kind.APIVersion()
	}
	asked := time.Now()
	out := a.Dispatch.Execute(ctx, vedette.Operation{Account: o.account.Name, Args: vedette.GetArgs{Target: target},
		Deadline: asked.Add(liveTimeout), Requester: authorize.RequesterOf(r), Origin: "api"})
	switch {
	case out.State == vedette.Failed && out.Status == http.StatusNotFound:
		return read.Row{}, vedette.Errorf(vedette.NotFound, "the cluster of %s has no %s: %s", o.account.Name, o.key, out.Message)
	case out.State != vedette.Done:
		return read.Row{}, vedette.Errorf(vedette.Unavailable, "%s", out.Message)
	case len(out.Objects) != 1:
		return read.Row{}, vedette.Errorf(vedette.Unavailable, "the agent sent %d objects instead of one", len(out.Objects))
	}
	row, err := liveobject.Row(o.account.Name, out.Objects[0], func(document []byte, v any) error {
		return exactjson.Unmarshal(document, v, exactjson.Limits{})
	})
	if err != nil {
		return row, vedette.Errorf(vedette.Unavailable, "%w", err)
	}
	row.Stored = asked
	return row, nil
}
