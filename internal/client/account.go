package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vedette-io/vedette"
)

// Cluster identifies a cluster.
type Cluster struct{ UID, Host, Fingerprint, Version string }

// AccountDecision is what a decision about an account changed.
type AccountDecision struct {
	Cluster Cluster  // that has the name, after AcceptAccount
	Agents  []string // that register the account again, after RemoveAccount
}

// AcceptAccount gives the name of an account to the cluster of a refused agent. An empty agent means
// the only such cluster.
func (c *Client) AcceptAccount(ctx context.Context, name, agent string) (AccountDecision, error) {
	body := map[string]string{}
	if agent != "" {
		body["agent"] = agent
	}
	return c.decide(ctx, http.MethodPost, name, "/accept", body)
}

// ReleaseAccount removes an account that no agent serves.
func (c *Client) ReleaseAccount(ctx context.Context, name string) error {
	_, err := c.decide(ctx, http.MethodPost, name, "/release", map[string]string{})
	return err
}

// RemoveAccount removes an account with its data.
func (c *Client) RemoveAccount(ctx context.Context, name string) (AccountDecision, error) {
	return c.decide(ctx, http.MethodDelete, name, "", map[string]string{})
}

// decide sends a decision about an account. No account has a name that a URL cannot contain.
func (c *Client) decide(ctx context.Context, method, name, action string, body map[string]string) (decision AccountDecision, err error) {
	if name == "" || name == "." || name == ".." {
		return decision, vedette.Errorf(vedette.NotFound, "no account can have the name %q: `vedette accounts` lists all", name)
	}
	path := "/accounts/" + url.PathEscape(name) + action
	encoded, err := json.Marshal(body)
	if err != nil {
		return decision, fmt.Errorf("encode the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+"/vedette/v1"+path, bytes.NewReader(encoded))
	if err != nil {
		return decision, fmt.Errorf("send a request to %s: %w", c.base, err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.send(c.http, request)
	if err != nil {
		return decision, err
	}
	err = c.decode(response, path, &decision)
	return decision, err
}
