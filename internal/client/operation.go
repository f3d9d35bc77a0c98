package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/operationjson"
)

// Operation is one thing to do in one cluster.
type Operation struct {
	Account string
	ID      string        // a ULID; empty for a new one. Operations that only read have none.
	Args    vedette.Args  // their type decides the verb
	Timeout time.Duration // 0 for the server's default
	DryRun  bool
}

// Reads reports whether the verb is read-only: such an operation has no ID and is never
// a dry run.
func (o Operation) Reads() bool { return vedette.Operation{Args: o.Args}.Reads() }

// Outcome is how an operation ended.
type Outcome struct {
	ID, Account     string
	State           vedette.OutcomeState
	Status          int
	Reason, Message string
	Keys            []Key
	Objects         []json.RawMessage
	Result          json.RawMessage
	Warnings        []string // of the cluster's API servers
	Unchanged       bool     // the apply is known to have changed nothing; see vedette.ApplyArgs.Compare
	Repeated        bool     // this is the outcome of an earlier request
}

// Key identifies an object that was written or deleted.
type Key struct{ Kind, Namespace, Name string }

// The interval and the maximum duration of retries after a connection failed.
const (
	retryInterval = 200 * time.Millisecond
	maxRetryTime  = 15 * time.Second
)

// Operate executes an operation and returns when it has ended. An operation that
// changes something gets an ID, so that Operate can ask again for an outcome that was
// cut off, and the operation still takes effect once. The error is of an operation
// that was not started, or of one whose outcome is unknown. In the second case the
// outcome is vedette.Lost and has the operation's ID.
func (c *Client) Operate(ctx context.Context, o Operation, origin string) (Outcome, error) {
	if o.ID == "" && !o.Reads() {
		o.ID = ulid.Make().String()
	}
	mayHaveRun := false
	out, err := c.operate(ctx, o, origin, &mayHaveRun)
	if err != nil && mayHaveRun && !o.Reads() {
		return Outcome{ID: o.ID, Account: o.Account, State: vedette.Lost}, err
	}
	return out, err
}

// operate sends an operation until it has an outcome. It sets mayHaveRun if the server may have
// accepted it.
func (c *Client) operate(ctx context.Context, o Operation, origin string, mayHaveRun *bool) (Outcome, error) {
	body, err := o.encode()
	if err != nil {
		return Outcome{}, err
	}
	retryDelay := backoff.NewExponentialBackOff()
	retryDelay.InitialInterval = retryInterval
	retrying := false
	return backoff.Retry(ctx, func() (Outcome, error) {
		out, err := c.post(ctx, body, origin)
		var connErr *connectionError
		if errors.As(err, &connErr) {
			*mayHaveRun = *mayHaveRun || connErr.sent
		} else if kind := vedette.KindOf(err); err != nil && (kind == "" || kind == vedette.Unavailable) {
			*mayHaveRun = true // a proxy's error, or the server failed
		}
		switch {
		case errors.As(err, &connErr) && (connErr.sent || retrying) && ctx.Err() == nil:
			retrying = true
			return out, err
		case retrying && vedette.KindOf(err) == vedette.Conflict: // the first request is still running
			return out, err
		case err != nil:
			return out, backoff.Permanent(err)
		}
		return out, nil
	}, backoff.WithBackOff(retryDelay), backoff.WithMaxElapsedTime(maxRetryTime+o.Timeout))
}

func (o Operation) encode() ([]byte, error) {
	r := operationjson.Request{ID: o.ID, Account: vedette.AccountName(o.Account), DryRun: o.DryRun, Args: o.Args}
	if o.Timeout > 0 {
		r.Timeout = o.Timeout.String()
	}
	return operationjson.Marshal(r)
}

type connectionError struct {
	error
	sent bool // the server may have received the request
}

func (e *connectionError) Unwrap() error { return e.error }

func (c *Client) post(ctx context.Context, body []byte, origin string) (Outcome, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/vedette/v1/operations", bytes.NewReader(body))
	if err != nil {
		return Outcome{}, fmt.Errorf("send a request to %s: %w", c.base, err)
	}
	request.Header.Set("Content-Type", "application/json")
	c.setHeaders(request)
	request.Header.Set("X-Vedette-Origin", origin)
	response, err := c.httpNoTimeout.Do(request)
	if err != nil {
		return Outcome{}, &connectionError{c.connectionFailed(err), !isConnectionRefused(err)}
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return Outcome{}, &connectionError{fmt.Errorf("read the response of %s: %w", c.base, err), true}
	}
	var out Outcome
	if json.Unmarshal(raw, &out) != nil || out.State == "" {
		response.Body = io.NopCloser(bytes.NewReader(raw))
		err := c.responseError(response)
		if response.StatusCode == http.StatusGatewayTimeout { // from a proxy whose timeout has expired
			err = &connectionError{err, true}
		}
		return out, err
	}
	return out, nil
}

// LogQuery selects a log.
type LogQuery struct {
	Account string
	vedette.LogsArgs
}

// Logs opens a log. The caller must close it. Only a log that ends with io.EOF is
// complete.
func (c *Client) Logs(ctx context.Context, l LogQuery) (io.ReadCloser, error) {
	response, err := c.doWith(ctx, c.httpNoTimeout, "/logs", operationjson.LogRequest{Account: vedette.AccountName(l.Account), Args: l.LogsArgs}.Values(), "text/plain")
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}
