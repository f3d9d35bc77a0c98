package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/outbox"
	"github.com/vedette-io/vedette/agent/uplink"
	"github.com/vedette-io/vedette/bench/dataset"
	"github.com/vedette-io/vedette/wire"
)

// fleetAgent is one agent without clusters, for all accounts of a dataset that the server's
// database has already. It resumes their feeds, so that they are live, and changes objects.
type fleetAgent struct {
	box      *outbox.Box
	link     *uplink.Uplink
	assigned chan uplink.Assignment
	stop     func()
}

// connectFleetAgent starts an agent for a number of accounts.
func connectFleetAgent(ctx context.Context, to string, accounts int) *fleetAgent {
	a := &fleetAgent{box: outbox.New(8 << 20), assigned: make(chan uplink.Assignment, accounts)}
	a.link = uplink.New(uplink.Config{Target: to, Creds: insecure.NewCredentials(), Agent: "bench"}, a.box, a, nil,
		slog.New(slog.DiscardHandler))
	linkCtx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.link.Run(linkCtx) // it ends with its context
	}()
	a.stop = func() { cancel(); <-ended }
	return a
}

// startFleetAgent connects an agent, and returns when all feeds of the dataset are live.
func startFleetAgent(ctx context.Context, to string, d dataset.Dataset) (*fleetAgent, error) {
	a := connectFleetAgent(ctx, to, d.Accounts)
	if err := a.resume(ctx, d); err != nil {
		a.stop()
		return nil, err
	}
	return a, nil
}

// Connected implements the uplink's listener.
func (a *fleetAgent) Connected(uplink.ServerSettings) {}

// Assigned implements the uplink's listener.
func (a *fleetAgent) Assigned(assignment uplink.Assignment) { a.assigned <- assignment }

// Indexed implements the uplink's listener.
func (a *fleetAgent) Indexed(uplink.Index) {}

// VerifyAnswered implements the uplink's handler. Nothing is verified.
func (a *fleetAgent) VerifyAnswered(uplink.VerifyAnswer) {}

// resume registers all accounts and continues their feeds from their marks.
func (a *fleetAgent) resume(ctx context.Context, d dataset.Dataset) error {
	for i := range d.Accounts {
		if err := a.link.Register(d.Account(i)); err != nil {
			return err
		}
	}
	for range d.Accounts {
		assignment, err := a.awaitAssignment(ctx)
		if err == nil {
			err = a.open(ctx, assignment)
		}
		if err != nil {
			return err
		}
	}
	return a.awaitAcks(ctx)
}

// awaitAssignment waits until the server has made the agent the cacher of an account.
func (a *fleetAgent) awaitAssignment(ctx context.Context) (uplink.Assignment, error) {
	select {
	case <-ctx.Done():
		return uplink.Assignment{}, context.Cause(ctx)
	case assignment := <-a.assigned:
		if assignment.Role != wire.Assignment_ROLE_CACHER {
			return assignment, fmt.Errorf("the server assigned account %s the role %s: %s", assignment.Account, assignment.Role, assignment.Message)
		}
		return assignment, nil
	}
}

// open says that the feeds of an account are live.
func (a *fleetAgent) open(ctx context.Context, assignment uplink.Assignment) error {
	if len(assignment.Marks) != len(dataset.Kinds()) {
		return fmt.Errorf("account %s has %d marks, want %d: the server discarded what it had stored", assignment.Account, len(assignment.Marks),
			len(dataset.Kinds()))
	}
	a.box.Open(assignment.Account, assignment.Term, assignment.Marks)
	for feed := range assignment.Marks {
		raw, err := wire.EncodeStep(&wire.Record_Status{Status: &wire.Status{State: string(vedette.FeedLive)}})
		if err != nil {
			return err
		}
		if err := a.box.Put(ctx, outbox.Change{Account: assignment.Account, Feed: feed, Priority: outbox.Live, Key: "status", Record: raw}); err != nil {
			return err
		}
	}
	return nil
}

// change sends one object and waits until it is stored.
func (a *fleetAgent) change(ctx context.Context, account vedette.AccountName, o vedette.Object) error {
	err := a.box.Put(ctx, outbox.Change{Account: account, Feed: vedette.Feed{Kind: o.Kind}, Priority: outbox.Live,
		Key: o.Namespace + "/" + o.Name, Mark: vedette.Mark(o.ResourceVersion), Record: wire.EncodeUpsert(o, true)})
	if err != nil {
		return err
	}
	return a.awaitAcks(ctx)
}

func (a *fleetAgent) awaitAcks(ctx context.Context) error {
	return await(ctx, "the server to acknowledge", time.Millisecond, func() (bool, error) { return a.box.Used() == 0, nil })
}
