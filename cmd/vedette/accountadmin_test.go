package main

import (
	"context"

	"github.com/vedette-io/vedette"
)

// fakeAccounts decides about accounts: another cluster wants dev, an agent serves prod-1, and no
// agent has prod-3.
type fakeAccounts struct{}

func (fakeAccounts) Accept(_ context.Context, account vedette.AccountName, _ vedette.AgentID) (vedette.Cluster, error) {
	if account != "dev" {
		return vedette.Cluster{}, vedette.Errorf(vedette.NotFound, "no agent wants to register account %s for another cluster: there is nothing to accept", account)
	}
	return vedette.Cluster{UID: "u2", Host: "https://u2"}, nil
}

func (fakeAccounts) Release(_ context.Context, account vedette.AccountName) error {
	if account == "prod-1" {
		return vedette.Errorf(vedette.Conflict, "account %s is in use", account)
	}
	return nil
}

func (fakeAccounts) Remove(_ context.Context, account vedette.AccountName) ([]vedette.AgentID, error) {
	if account == "prod-1" {
		return []vedette.AgentID{"a1", "a2"}, nil
	}
	return nil, nil
}
