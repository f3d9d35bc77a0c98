package task

import (
	"encoding/json"
	"time"

	"github.com/vedette-io/vedette"
)

// frame is one message of a copy: Head, then an Op for each operation, a From, and then what happens. Exactly one member is set.
type frame struct {
	Head *headFrame  `json:"head,omitempty"`
	Op   *opFrame    `json:"op,omitempty"`
	From *checkpoint `json:"from,omitempty"` // an operation begins; what came before is forgotten
	Step *step       `json:"step,omitempty"` // a new one, or the answer to a change
	// Continue asks the other server to go on with the task at once.
	Continue bool `json:"continue,omitempty"`
	// End says that the task has ended.
	End bool `json:"end,omitempty"`
}

// headFrame is a task without its operations.
type headFrame struct {
	ID          string                `json:"id"`
	Copy        string                `json:"copy"`
	Owner       vedette.ServerID      `json:"owner"`
	Run         string                `json:"run"`
	Began       time.Time             `json:"began"` // the run
	Started     time.Time             `json:"started"`
	RequestID   string                `json:"requestID"`
	Application string                `json:"application"`
	User        string                `json:"user"`
	Requester   sentRequester         `json:"requester"`
	Source      string                `json:"source"`
	Accounts    []vedette.AccountName `json:"accounts"`
	Ops         int                   `json:"ops"` // how many the task has
}

// sentRequester is a vedette.Requester.
type sentRequester struct {
	User    string `json:"user"`
	Claimed string `json:"claimed"`
	Proven  string `json:"proven"`
	Service string `json:"service"`
	Address string `json:"address"`
}

// sentRequest is a Request.
type sentRequest struct {
	Name        string          `json:"name"`
	Description json.RawMessage `json:"description"`
}

// sentKey is a vedette.Key.
type sentKey struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func sendKey(k vedette.Key) sentKey { return sentKey{k.Kind.Group, k.Kind.Name, k.Namespace, k.Name} }

func (k sentKey) key() vedette.Key {
	return vedette.Key{Kind: vedette.Kind{Group: k.Group, Name: k.Kind}, Namespace: k.Namespace, Name: k.Name}
}

// opFrame is an operation as it was accepted.
type opFrame struct {
	Op       int           `json:"op"` // its place in the task
	Requests []sentRequest `json:"requests"`
	// Caller is who asks the upstream Clouddriver; empty unless that executes the operation.
	Caller    []byte                   `json:"caller,omitempty"`
	Custom    []vedette.CustomResource `json:"custom,omitempty"`
	Debug     bool                     `json:"debug,omitempty"`
	Namespace string                   `json:"namespace,omitempty"`

	size int64 // what bytes returned; 0 before
}

// checkpoint is the state of a task before one of its operations.
type checkpoint struct {
	Op         int             `json:"op"`
	Failed     bool            `json:"failed,omitempty"`     // an earlier operation has
	LastFailed bool            `json:"lastFailed,omitempty"` // the operation before has
	Body       json.RawMessage `json:"body"`                 // storedBody
}

// remoteCaller is a Remote that another server can make again.
type remoteCaller interface{ Caller() ([]byte, error) }

// newOpFrame returns an operation for another server. It fails if that cannot execute it.
func newOpFrame(index int, op *validatedOp) (opFrame, error) {
	f := opFrame{Op: index, Custom: op.custom, Debug: op.debug, Namespace: op.namespace}
	for _, r := range op.requests {
		f.Requests = append(f.Requests, sentRequest(r))
	}
	remote, isRemote := op.operation.(*remoteOp)
	if !isRemote {
		return f, nil
	}
	caller, ok := remote.remote.(remoteCaller)
	if !ok {
		return f, vedette.Errorf(vedette.Invalid, "the upstream Clouddriver cannot be asked by another server")
	}
	var err error
	f.Caller, err = caller.Caller()
	return f, err
}

// operation returns the operation at the server that continues its task.
func (f *opFrame) operation(s *Sharing) (validatedOp, error) {
	var requests []Request
	for _, r := range f.Requests {
		requests = append(requests, Request(r))
	}
	if f.Caller == nil {
		if len(requests) != 1 {
			return validatedOp{}, vedette.Errorf(vedette.Invalid, "an operation in the copy of a task has %d requests instead of one", len(requests))
		}
		spec, err := findOpSpec(requests[0].Name, kubernetes)
		if err != nil {
			return validatedOp{}, err
		}
		op, err := spec.parse(requests[0].Description)
		return validatedOp{opSpec: spec, operation: op, requests: requests, custom: f.Custom, debug: f.Debug, bytes: f.bytes(),
			namespace: f.Namespace}, err
	}
	if s.Remote == nil || len(requests) == 0 {
		return validatedOp{}, vedette.Errorf(vedette.Invalid, "this server has no upstream Clouddriver")
	}
	remote, err := s.Remote(f.Caller)
	op := &remoteOp{remote: remote, accountName: requests[0].Account(), requests: requests, index: f.Op}
	return validatedOp{opSpec: remoteSpec(), operation: op, requests: requests, bytes: f.bytes()}, err
}

// bytes is what the operation takes when its task goes on here.
func (f *opFrame) bytes() int64 {
	if f.size == 0 {
		f.size = int64(len(f.Caller))
		for _, r := range f.Requests {
			f.size += descriptionBytes(r.Description)
		}
	}
	return f.size
}

const stepBytes = 512 // of a step without its answer

// bytes is what a step takes when its task goes on here.
func (s *step) bytes() int64 {
	if s.Outcome == nil {
		return stepBytes
	}
	o := s.Outcome
	bytes := stepBytes + int64(len(o.Message)+len(o.Reason)+len(o.Result)+len(o.WrittenVersion))
	for _, raw := range o.Objects {
		bytes += decodedBytes(raw)
	}
	for _, key := range o.Keys {
		bytes += int64(keyBytes + len(key.Name) + len(key.Namespace) + len(key.Kind) + len(key.Group))
	}
	return bytes
}

const keyBytes = 64 // of a vedette.Key without its texts

// bytes is what a frame takes when its task goes on here.
func (f *frame) bytes() int64 {
	switch {
	case f.Head != nil:
		return taskBytes + int64(f.Head.Ops)*opBytes
	case f.Op != nil:
		return f.Op.bytes()
	case f.From != nil:
		return keptCopies * int64(len(f.From.Body))
	case f.Step != nil:
		return f.Step.bytes()
	}
	return 0
}

// addStep adds a step, or the answer to a change that was begun.
func addStep(steps []step, s step) []step {
	if s.ID != "" {
		for i := range steps {
			if steps[i].ID == s.ID {
				steps[i] = s
				return steps
			}
		}
	}
	return append(steps, s)
}
