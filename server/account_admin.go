package server

import (
	"context"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/assigner"
)

// accountAdmin implements operators' decisions about accounts for the API. The registry keeps agents
// from registering an account while it changes.
type accountAdmin struct {
	assignments *assigner.Registry
	accounts    *accounts.Accounts
	known       func(context.Context) error // waits until other servers know what was changed; nil if there are none
}

func (v *services) accountAdmin() accountAdmin {
	m := accountAdmin{assignments: v.assignments, accounts: v.accounts}
	if v.coherence != nil {
		m.known = v.coherence.Flush
	}
	return m
}

// maxKnownWait bounds how long an operator waits for other servers. One that does not answer uses its caches for a shorter time.
const maxKnownWait = 3 * time.Second

// makeKnown lets the operator read at any server what was changed. If it fails, the change has been made all the same.
func (m accountAdmin) makeKnown(ctx context.Context, err error) {
	if err != nil || m.known == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxKnownWait)
	defer cancel()
	_ = m.known(ctx)
}

// Accept gives an account's name to another cluster.
func (m accountAdmin) Accept(ctx context.Context, account vedette.AccountName, agent vedette.AgentID) (vedette.Cluster, error) {
	cluster, err := m.assignments.Transfer(ctx, account, agent, m.accounts.Replace)
	m.makeKnown(ctx, err)
	return cluster, err
}

// Release removes an account that no agent serves.
func (m accountAdmin) Release(ctx context.Context, account vedette.AccountName) error {
	err := m.accounts.Release(ctx, account)
	m.makeKnown(ctx, err)
	return err
}

// Remove removes an account, and returns the agents whose roles that has ended.
func (m accountAdmin) Remove(ctx context.Context, account vedette.AccountName) ([]vedette.AgentID, error) {
	agents, err := m.assignments.Vacate(ctx, account, m.accounts.Remove)
	m.makeKnown(ctx, err)
	return agents, err
}
