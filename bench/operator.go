package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"
)

// operator sends operations to a server over connections that it reuses.
type operator struct {
	url     string
	account string
	client  *http.Client
}

func newOperator(s *server, account string, connections int) *operator {
	return &operator{url: "http://" + s.rest + "/vedette/v1/operations", account: account,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}}
}

// forAccount returns an operator for another account.
func (o *operator) forAccount(account string) *operator {
	return &operator{url: o.url, account: account, client: o.client}
}

// operationBody is the body of an operation for the REST API, without its account.
type operationBody map[string]any

// outcome has the fields of an outcome that bench checks.
type outcome struct {
	State, Message string
	Objects        []struct {
		Metadata struct{ Name, Namespace, UID string }
	}
	Error struct{ Message string }
}

// execute runs an operation. It is a clientMethod.
func (o *operator) execute(ctx context.Context, op operationCase, s *fixture) (time.Duration, error) {
	_, took, err := o.operate(ctx, op.body(s))
	return took, err
}

// operate returns the outcome of an operation, and the time until it was read completely. An
// outcome other than success is an error.
func (o *operator) operate(ctx context.Context, m operationBody) (outcome, time.Duration, error) {
	var out outcome
	m = maps.Clone(m)
	m["account"] = o.account
	body, err := json.Marshal(m)
	if err != nil {
		return out, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return out, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := o.client.Do(req)
	if err != nil {
		return out, 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	took := time.Since(began)
	if err != nil {
		return out, took, err
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return out, took, fmt.Errorf("%s: %w", resp.Status, err)
	}
	if out.State != "done" {
		return out, took, fmt.Errorf("%s on %s: %s %s%s", m["verb"], o.account, resp.Status, out.Message, out.Error.Message)
	}
	return out, took, nil
}
