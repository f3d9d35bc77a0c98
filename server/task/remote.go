package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/textcheck"
	"github.com/vedette-io/vedette/server/manifest"
)

// Remote is a Clouddriver that executes the operations of accounts that no agent has registered.
type Remote interface {
	// Owns reports whether the remote service executes a request.
	Owns(ctx context.Context, r Request) (bool, error)
	// Submit starts a task. A second submission with the same request ID returns the first task.
	Submit(ctx context.Context, requests []Request, requestID string) (id string, err error)
	// Get returns a task. The error is vedette.Unavailable if asking again can help.
	Get(ctx context.Context, id string) (RemoteTask, error)
}

// RemoteTask is the state of a task of a Remote.
type RemoteTask struct {
	Completed bool
	Failed    bool
	Status    string // the last line of the history
	History   []HistoryEntry
	Results   []json.RawMessage
}

// hasException reports whether the results say why the task failed.
func (t RemoteTask) hasException() bool {
	return slices.ContainsFunc(t.Results, func(raw json.RawMessage) bool {
		var result struct {
			Type string `json:"type"`
		}
		return exactjson.Unmarshal(raw, &result, bodyLimits) == nil && result.Type == exceptionType
	})
}

// remoteSpec is the specification of all operations of a Remote.
func remoteSpec() opSpec {
	return opSpec{name: "upstream", class: "UpstreamOperations", phase: "UPSTREAM"}
}

// remoteOp is a run of operations of one account that a Remote executes as one task. Operations of
// different accounts are separate, so that each account of the task is known for access checks.
type remoteOp struct {
	remote      Remote
	accountName vedette.AccountName
	requests    []Request
	index       int // among the operations of the task
}

// isRemote reports whether the remote service executes a request.
func (o Options) isRemote(ctx context.Context, r Request) (bool, error) {
	if o.Remote == nil {
		return false, nil
	}
	return o.Remote.Owns(ctx, r)
}

// appendRemote appends a request to the operations of a task. Consecutive requests of one account
// become one operation.
func (o Options) appendRemote(all []validatedOp, r Request, bytes int64) []validatedOp {
	account := r.Account()
	if n := len(all); n > 0 {
		if last, ok := all[n-1].operation.(*remoteOp); ok && last.accountName == account {
			last.requests = append(last.requests, r)
			all[n-1].bytes += bytes
			all[n-1].requests = last.requests
			return all
		}
	}
	op := &remoteOp{remote: o.Remote, accountName: account, requests: []Request{r}, index: len(all)}
	return append(all, validatedOp{opSpec: remoteSpec(), operation: op, bytes: bytes, requests: op.requests})
}

func (o *remoteOp) account() vedette.AccountName { return o.accountName }
func (*remoteOp) provider() string               { return "" }

// check accepts everything, because the remote service validates its operations itself.
func (*remoteOp) check(*validation) {}

// run submits the operations and follows the remote task until its end.
func (o *remoteOp) run(ctx context.Context, t *opContext) (*Result, error) {
	t.saveProgress(ctx)
	// If our task is run again, it finds the remote task instead of starting a second one.
	requestID := fmt.Sprintf("%s-%d", t.options.RequestID, o.index)
	id, err := o.submit(ctx, requestID)
	if err != nil {
		return nil, fmt.Errorf("submit %v of account %s to the upstream Clouddriver: %w", requestNames(o.requests), o.accountName, err)
	}
	o.requests = nil
	t.reportf("Submitted to the upstream Clouddriver as task %s", id)
	t.saveProgress(ctx)
	remote, err := o.follow(ctx, t, id)
	if err != nil {
		return nil, err
	}
	return nil, t.importRemoteTask(id, remote)
}

// submit starts the remote task. An answer that is lost is asked for again, because the operations
// may have been accepted.
func (o *remoteOp) submit(ctx context.Context, requestID string) (string, error) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = remoteMinWait, remoteMaxWait
	for start := time.Now(); ; {
		id, err := o.remote.Submit(ctx, o.requests, requestID)
		isUnknown := vedette.KindOf(err) == vedette.Unavailable
		switch {
		case !isUnknown:
			return id, err
		case time.Since(start) > remoteMaxSubmit:
			return "", fmt.Errorf("it may have accepted them, and they may run: %w", err)
		}
		if cause := sleep(ctx, wait.NextBackOff()); cause != nil {
			return "", illegalState(fmt.Sprintf("%s. The upstream Clouddriver may have accepted %v of account %s.",
				cause, requestNames(o.requests), o.accountName))
		}
	}
}

func requestNames(requests []Request) []string {
	var names []string
	for _, r := range requests {
		names = append(names, r.Name)
	}
	return names
}

// Limits for following a remote task.
const (
	remoteMaxTime  = 2 * time.Hour   // Orca waits at most that long
	remoteMaxError = 5 * time.Minute // how long the remote service may not answer
	// remoteMaxSubmit is how long a submission is repeated that was not answered.
	remoteMaxSubmit = time.Minute
	remoteMinWait   = 500 * time.Millisecond
	remoteMaxWait   = 5 * time.Second
)

// follow polls a remote task until its end, and copies its history.
func (o *remoteOp) follow(ctx context.Context, t *opContext, id string) (RemoteTask, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, remoteMaxTime, errRemoteTooLong)
	defer cancel()
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = remoteMinWait, remoteMaxWait
	var answered time.Time
	for copied := 0; ; {
		remote, err := o.remote.Get(ctx, id)
		switch {
		case err == nil:
			answered = time.Now()
			copied = t.copyHistory(remote.History, copied)
		case answered.IsZero():
			answered = time.Now() // the time starts with the first failure
		case time.Since(answered) > remoteMaxError:
			return remote, fmt.Errorf("the state of task %s of the upstream Clouddriver is unknown, and it may still run: %w", id, err)
		}
		if err == nil && remote.Completed {
			return remote, nil
		}
		if cause := sleep(ctx, wait.NextBackOff()); cause != nil {
			return remote, illegalState(fmt.Sprintf("%s. Task %s of the upstream Clouddriver may still run.", cause, id))
		}
	}
}

var errRemoteTooLong = fmt.Errorf("the task did not end within %s", remoteMaxTime)

// sleep waits, and returns the cause if ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// What is copied of one remote task is bounded, because it is stored.
const (
	maxRemoteHistory     = 1000 // lines
	maxRemoteLineBytes   = 4 << 10
	maxRemoteResultBytes = 4 << 20
)

// copyHistory adds the lines that are new since the last call. It returns how many lines were
// copied so far.
func (t *opContext) copyHistory(lines []HistoryEntry, copied int) int {
	lines = lines[:min(len(lines), maxRemoteHistory)]
	for ; copied < len(lines); copied++ {
		t.report(textcheck.Truncate(lines[copied].Phase, maxRemoteLineBytes), textcheck.Truncate(lines[copied].Status, maxRemoteLineBytes))
	}
	return copied
}

// withoutSecrets removes the data of Secrets from a result, because results are stored. Clouddriver
// removes it too, but not in every version and plugin. Results of another form have no manifests.
func withoutSecrets(raw json.RawMessage) json.RawMessage {
	var result map[string]json.RawMessage
	var manifests []manifest.Manifest
	if exactjson.Unmarshal(raw, &result, bodyLimits) != nil || exactjson.Unmarshal(result["manifests"], &manifests, bodyLimits) != nil {
		return raw
	}
	for i, m := range manifests {
		manifests[i] = manifest.WithoutSecrets(m)
	}
	safe, err := json.Marshal(manifests)
	if err != nil { // decoded values can be encoded
		panic(err)
	}
	result["manifests"] = safe
	whole, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	return whole
}

// errReported is the error of an operation whose results say already why it failed.
var errReported = errors.New("the results say why the operation failed")

// importRemoteResults adds results as long as they can be stored. No database would take all, and the task
// would never end.
func (t *opContext) importRemoteResults(results []json.RawMessage) {
	size, omitted := 0, 0
	for _, raw := range results {
		if size+len(raw) > maxRemoteResultBytes {
			omitted++
			continue
		}
		if t.keepResult(withoutSecrets(raw)) != nil {
			omitted++
			continue
		}
		size += len(raw)
	}
	if omitted > 0 {
		t.reportf("%d results of the upstream Clouddriver are left out, because they are larger than %d MiB together, or than the memory that is left for tasks",
			omitted, maxRemoteResultBytes>>20)
	}
}

// importRemoteTask adds the results of a remote task that has ended.
func (t *opContext) importRemoteTask(id string, remote RemoteTask) error {
	t.importRemoteResults(remote.Results)
	switch {
	case !remote.Failed:
		return nil
	case remote.hasException():
		return errReported
	}
	status := textcheck.Truncate(remote.Status, maxRemoteLineBytes)
	return illegalState(fmt.Sprintf("Task %s of the upstream Clouddriver failed: %s", id, status))
}
