package task

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/bytesize"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/fair"
)

// What a task takes, besides its descriptions.
const (
	defaultMaxBytes = 256 << 20
	taskBytes       = 16 << 10
	// opBytes is what an operation takes without its description: itself, and a failure that names it. Nothing
	// else may use it, so that a task can always say why it failed.
	opBytes = 4 << 10
	// keptCopies is how often history, results and outputs are in memory while they are stored: in the task,
	// encoded, and compressed.
	keptCopies = 3
	entryBytes = 64 // of a line of the history, or of an output, besides its texts
	// growthPiece is how much a task takes in advance for its history.
	growthPiece = 16 << 10
	// maxFailureBytes bounds the message of a failure if there is no memory for it.
	maxFailureBytes = 256
)

// How long requests and tasks wait for memory, and how many requests of one source.
const (
	memoryWait  = 10 * time.Second
	memoryQueue = 100
)

// newBudget returns the memory of all tasks. One source may hold half, so that it leaves room for others.
func newBudget(bytes int64) *fair.Line {
	return fair.New(fair.Config{Capacity: bytes, Share: bytes / 2, Queue: memoryQueue, Wait: memoryWait})
}

// TooLargeError reports a task that alone would take more memory than the tasks of one source may have. Its kind
// is vedette.Invalid.
type TooLargeError struct{ limit int64 }

// Error says what to do.
func (e *TooLargeError) Error() string {
	return vedette.Errorf(vedette.Invalid, "the operations would take more than the %s of memory that tasks of one client may have on this server: "+
		"split them into several requests, or deploy fewer manifests at a time", bytesize.Text(e.limit)).Error()
}

// Unwrap returns a vedette.Invalid.
func (e *TooLargeError) Unwrap() error {
	return &vedette.Error{Kind: vedette.Invalid, Message: e.Error()}
}

// memory is what one task takes, from its submission until it is forgotten. What the cluster answers and what
// the task says grow it. Only one goroutine may use it at a time.
type memory struct {
	grant *fair.Grant
	limit int64 // of one task
	free  int64 // bytes of the grant that the history has not used yet
	op    int64 // bytes that belong to the current operation, and are returned at its end
	kept  bool  // a run has taken it over
	// isCopied is true if descriptions are encoded for another server.
	isCopied bool

	descriptions []int64 // bytes of the descriptions, by request; nil after they are prepared
}

// admit waits for the memory of a submission.
func (t *Tasks) admit(ctx context.Context, requests []Request, o Options) (*memory, error) {
	m := &memory{limit: t.cfg.MaxBytes / 2, isCopied: t.cfg.Sharing != nil}
	bytes := int64(taskBytes)
	for _, r := range requests {
		description := m.descriptionBytes(r.Description)
		m.descriptions = append(m.descriptions, description)
		bytes += opBytes + description
	}
	if bytes > m.limit {
		return nil, &TooLargeError{m.limit}
	}
	var err error
	m.grant, err = t.budget.Acquire(ctx, o.Source, bytes)
	m.free = taskBytes
	return m, m.refusal(err)
}

// descriptionBytes is what a description takes here, and on its way to another server.
func (m *memory) descriptionBytes(raw []byte) int64 {
	if m.isCopied {
		return descriptionBytes(raw) + int64(len(raw))
	}
	return descriptionBytes(raw)
}

// descriptionBytes is what a description takes: decoded, and planned, which shares its texts.
func descriptionBytes(raw []byte) int64 {
	decoded := decodedBytes(raw)
	return decoded + max(0, decoded-3*int64(len(raw)))
}

// decodedBytes is what a document takes with its decoded copy. Whoever decodes an invalid one says what is wrong.
func decodedBytes(raw []byte) int64 {
	size, _ := exactjson.Measure(raw, new(any), exactjson.Limits{Bytes: exactjson.Unlimited})
	return size.Bytes + int64(len(raw))
}

// refusal returns why there is no memory.
func (m *memory) refusal(err error) error {
	switch {
	case errors.Is(err, fair.ErrTooLarge):
		return &TooLargeError{m.limit}
	case errors.Is(err, fair.ErrTimeout), errors.Is(err, fair.ErrQueueFull):
		return vedette.Errorf(vedette.Unavailable, "running tasks have used the memory that this server has for them, or for those of one client: "+
			"try again when some have ended, or deploy fewer manifests at a time")
	}
	return err
}

// grow waits until the task may take so many bytes more.
func (m *memory) grow(ctx context.Context, bytes int64) error {
	return m.refusal(m.grant.Grow(ctx, bytes))
}

// growDescription waits for what a description has become more than it was.
func (m *memory) growDescription(ctx context.Context, index int, expanded Request) error {
	bytes := m.descriptionBytes(expanded.Description)
	if err := m.grow(ctx, bytes-m.descriptions[index]); err != nil {
		return err
	}
	m.descriptions[index] = max(bytes, m.descriptions[index])
	return nil
}

// hold waits for the memory of documents that are decoded until the current operation ends.
func (m *memory) hold(ctx context.Context, documents ...json.RawMessage) error {
	var bytes int64
	for _, raw := range documents {
		bytes += decodedBytes(raw)
	}
	if err := m.grow(ctx, bytes); err != nil {
		return err
	}
	m.op += bytes
	return nil
}

// beginOp begins an operation whose description took so many bytes.
func (m *memory) beginOp(description int64) { m.op = description }

// endOp returns what the current operation took.
func (m *memory) endOp() {
	m.grant.Shrink(m.op)
	m.op = 0
}

// tryTake reports whether the task may keep so many bytes of texts. It does not wait.
func (m *memory) tryTake(texts int) bool {
	bytes := keptCopies * int64(texts+entryBytes)
	if more := bytes - m.free; more > 0 {
		more = max(more, growthPiece)
		if !m.grant.TryGrow(more) {
			return false
		}
		m.free += more
	}
	m.free -= bytes
	return true
}

// keep lets the memory outlive its request.
func (m *memory) keep() { m.kept = true }

// releaseUnlessKept is called at the end of the request.
func (m *memory) releaseUnlessKept() {
	if !m.kept {
		m.grant.Release()
	}
}
