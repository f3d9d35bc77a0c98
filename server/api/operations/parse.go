// Package operations parses the operations that callers of the API send, executes each once, and writes their outcomes.
package operations

import (
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/operationjson"
)

// Parse decodes and validates the body of a request.
func Parse(raw []byte) (vedette.Operation, error) {
	request, err := operationjson.Unmarshal(raw)
	if err != nil {
		return vedette.Operation{}, err
	}
	op := vedette.Operation{Account: request.Account, DryRun: request.DryRun}
	op.Args, err = validateArgs(request.Args)
	if err != nil {
		return op, err
	}
	op.ID, err = parseID(request.ID, op)
	if err != nil {
		return op, err
	}
	op.Deadline, err = parseDeadline(request.Timeout)
	return op, err
}

// parseID reads the caller's ID for an operation. Read-only verbs take none, because an
// ID only prevents that an operation takes effect twice.
func parseID(id string, op vedette.Operation) (vedette.OperationID, error) {
	if id == "" {
		return "", nil
	}
	if op.Reads() {
		return "", vedette.Errorf(vedette.Invalid, "the verb %s is read-only and takes no id: leave it out", op.Args.Verb())
	}
	parsed, err := ulid.ParseStrict(id)
	if err != nil {
		return "", vedette.Errorf(vedette.Invalid, "the id %.40q is not a ULID: create a new ULID for each operation, or leave the id out", id)
	}
	return vedette.OperationID(parsed.String()), nil
}

// The limits of an operation's timeout.
const (
	minTimeout = 100 * time.Millisecond
	maxTimeout = time.Hour // an operation occupies memory of server and agent until it ends
)

// parseDeadline reads a timeout. The zero time means the default.
func parseDeadline(timeout string) (time.Time, error) {
	if timeout == "" {
		return time.Time{}, nil
	}
	d, err := time.ParseDuration(timeout)
	if err != nil || d < minTimeout || d > maxTimeout {
		return time.Time{}, vedette.Errorf(vedette.Invalid, "the timeout %.40q must be a duration, for example 30s or 5m, from %v to %v", timeout,
			minTimeout, maxTimeout)
	}
	return time.Now().Add(d), nil
}
