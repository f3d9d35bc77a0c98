package server

import (
	"context"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/accounts"
	"github.com/vedette-io/vedette/server/assigner"
)

// accountAdmin implements operators' decisions about accounts for the API. The registry keeps agents
// from registering an account while it changes.
type accountAdmin struct {
	assignments *assigner.Registry
	accounts    *accounts.Accounts
}

// Accept gives an account's name to another cluster.
func (m accountAdmin) Accept(ctx context.Context, account vedette.AccountName, agent vedette.AgentID) (vedette.Cluster, error) {
	return m.assignments.Transfer(ctx, account, agent, m.accounts.Replace)
}

// Release removes an account that no agent serves.
func (m accountAdmin) Release(ctx context.Context, account vedette.AccountName) error {
	return m.accounts.Release(ctx, account)
}

func (m accountAdmin) Remove(ctx context.Context, account vedette.AccountName) ([]vedette.AgentID, error) {
	return m.assignments.Vacate(ctx, account, m.accounts.Remove)
}
