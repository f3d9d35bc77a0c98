package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/api/accountfeeds"
	"github.com/vedette-io/vedette/server/api/parameters"
	"github.com/vedette-io/vedette/server/authorize"
	"github.com/vedette-io/vedette/server/rest"
)

// accountAdmin carries out operators' decisions about the names of accounts.
type accountAdmin interface {
	// Accept gives the name of an account to the cluster of an agent that was refused because another
	// cluster has it. An empty agent means the only such cluster.
	Accept(ctx context.Context, account vedette.AccountName, agent vedette.AgentID) (vedette.Cluster, error)
	// Release removes an account that no agent serves.
	Release(ctx context.Context, account vedette.AccountName) error
	// Remove removes an account, and returns the agents that register it again.
	Remove(ctx context.Context, account vedette.AccountName) ([]vedette.AgentID, error)
}

// accountDecision is the answer to an operator's decision.
type accountDecision struct {
	Account vedette.AccountName `json:"account"`
	Cluster *clusterView        `json:"cluster,omitempty"` // that has the name now
	Agents  []vedette.AgentID   `json:"agents,omitempty"`  // that register the account again
}

func (a *api) acceptAccount(w http.ResponseWriter, r *http.Request) error {
	if isAnswered, err := rejectForeignRequest(w, r); isAnswered || err != nil {
		return err
	}
	agent, err := parseAccept(w, r)
	if err != nil {
		return err
	}
	return a.decide(w, r, "accept", func(ctx context.Context, name vedette.AccountName) (accountDecision, error) {
		cluster, err := a.Accounts.Accept(ctx, name, agent)
		return accountDecision{Cluster: (*clusterView)(&cluster)}, err
	})
}

func (a *api) releaseAccount(w http.ResponseWriter, r *http.Request) error {
	if isAnswered, err := rejectForeignRequest(w, r); isAnswered || err != nil {
		return err
	}
	return a.decide(w, r, "release", func(ctx context.Context, name vedette.AccountName) (accountDecision, error) {
		return accountDecision{}, a.Accounts.Release(ctx, name)
	})
}

func (a *api) removeAccount(w http.ResponseWriter, r *http.Request) error {
	if err := rest.CheckOrigin(r); err != nil {
		return err
	}
	return a.decide(w, r, "remove", func(ctx context.Context, name vedette.AccountName) (accountDecision, error) {
		agents, err := a.Accounts.Remove(ctx, name)
		return accountDecision{Agents: agents}, err
	})
}

// decide carries out a decision about the account in the path, if the caller may change the account.
func (a *api) decide(w http.ResponseWriter, r *http.Request, action string,
	do func(context.Context, vedette.AccountName) (accountDecision, error)) error {
	if _, err := parameters.Parse(r); err != nil {
		return err
	}
	if a.Accounts == nil {
		return vedette.Errorf(vedette.Unavailable, "this server does not change accounts")
	}
	name, caller := vedette.AccountName(r.PathValue("name")), authorize.CallerOf(r)
	if err := a.checkAccountExists(r.Context(), name); err != nil {
		return err
	}
	if err := a.Authorizer.CheckAccount(r.Context(), caller, name, authorize.Write); err != nil {
		return err
	}
	decision, err := do(r.Context(), name)
	if err != nil {
		return err
	}
	decision.Account = name
	a.Log.Info("an operator has changed an account", "action", action, "account", name, "caller", caller)
	return rest.WriteJSON(w, r, decision)
}

// checkAccountExists returns an error with suggestions if there is no such account.
func (a *api) checkAccountExists(ctx context.Context, name vedette.AccountName) error {
	_, err := accountfeeds.With(ctx, a.accountFeeds, func(i *accountfeeds.List) (struct{}, error) {
		if i.Account(name) == nil {
			return struct{}{}, i.NotFound(string(name))
		}
		return struct{}{}, nil
	})
	return err
}

// maxAcceptBytes is the maximum size of a body that names an agent.
const maxAcceptBytes = 4 << 10

// parseAccept returns the agent in the body; it may be empty.
func parseAccept(w http.ResponseWriter, r *http.Request) (vedette.AgentID, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAcceptBytes))
	var members map[string]vedette.AgentID
	if err == nil && len(bytes.TrimSpace(raw)) > 0 {
		err = exactjson.Unmarshal(raw, &members, exactjson.Limits{})
	}
	agent := members["agent"]
	if delete(members, "agent"); err == nil && len(members) > 0 {
		err = errors.New("it has another field")
	}
	if err != nil {
		return "", vedette.Errorf(vedette.Invalid, "the body must be a JSON object with the optional field agent: %w", err)
	}
	if len(agent) > maxHeaderText {
		return "", vedette.Errorf(vedette.Invalid, "the agent has %d bytes, more than the limit of %d", len(agent), maxHeaderText)
	}
	return agent, nil
}

// rejectForeignRequest rejects requests that a web page of another site may have sent. It reports
// whether it has answered.
func rejectForeignRequest(w http.ResponseWriter, r *http.Request) (isAnswered bool, err error) {
	if err := rest.CheckOrigin(r); err != nil {
		return false, err
	}
	if isJSON(r) {
		return false, nil
	}
	writeError(w, http.StatusUnsupportedMediaType, string(vedette.Invalid),
		fmt.Sprintf("%s %s needs the header Content-Type: application/json", r.Method, r.URL.Path))
	return true, nil
}
