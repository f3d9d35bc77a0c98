package wire

import (
	"time"

	"github.com/vedette-io/vedette"
)

// FromOperation encodes an operation. Its deadline is sent as the remaining time,
// because the clocks of server and agent differ. An operation with a string that is
// not valid UTF-8 is vedette.Invalid: a repaired name would name another object.
func FromOperation(op vedette.Operation, now time.Time) (*Operation, error) {
	o, err := encodeOperation(op, now)
	if err != nil {
		return nil, err
	}
	if name, valid := findInvalidUTF8(o.ProtoReflect()); !valid {
		return nil, vedette.Errorf(vedette.Invalid, "the name %q is not valid UTF-8, so no cluster can have such an object", name)
	}
	return o, nil
}

func encodeOperation(op vedette.Operation, now time.Time) (*Operation, error) {
	o := &Operation{Id: string(op.ID), Account: string(op.Account), RequestId: op.RequestID, TraceParent: op.TraceParent}
	if op.Cluster != (vedette.Cluster{}) {
		o.Cluster = FromCluster(op.Cluster)
	}
	if !op.Deadline.IsZero() {
		o.TimeoutMillis = max(1, op.Deadline.Sub(now).Milliseconds())
	}
	if !op.DryRun {
		return o, o.setArgs(op.Args)
	}
	inner := &Operation{}
	o.Verb = &Operation_DryRun{&DryRun{Operation: inner}}
	return o, inner.setArgs(op.Args)
}

// maxRequestID and maxTraceParent bound texts about the request that caused an operation, in bytes.
const maxRequestID, maxTraceParent = 128, 128

// ToOperation decodes an operation. Its Args are nil if this program is too old to know
// the verb.
func ToOperation(o *Operation, now time.Time) vedette.Operation {
	op := vedette.Operation{ID: vedette.OperationID(o.GetId()), Account: vedette.AccountName(o.GetAccount()), Args: o.args(),
		RequestID: vedette.CleanText(o.GetRequestId(), maxRequestID), TraceParent: vedette.CleanText(o.GetTraceParent(), maxTraceParent),
		Cluster: ToCluster(o.GetCluster())}
	if o.GetDryRun() != nil {
		op.DryRun, op.Args = true, o.GetDryRun().GetOperation().args()
	}
	if o.GetTimeoutMillis() > 0 {
		op.Deadline = now.Add(time.Duration(o.GetTimeoutMillis()) * time.Millisecond)
	}
	return op
}
