package task

import (
	"context"
	"sync"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/internal/fair"
)

// HeldCopy is the copy of a task of another server. It is in memory only: what was submitted can contain Secrets. It is not safe for
// concurrent use, except by this package.
//
//	receiving ──> ended: the task has ended, or was taken over by this server
//	    │ the stream ends
//	    └──> orphaned ──> ended: also when the row of the task names another copy
type HeldCopy struct {
	tasks   *Tasks
	from    vedette.ServerID
	process string
	intake  *fair.Grant // of the first frame
	grant   *fair.Grant // of the rest
	last    int64       // bytes of the grant that belong to the frame that arrives
	isEnded bool        // of who receives

	taking turn // held while grant grows, and while this server takes the task over

	mu      sync.Mutex
	head    *headFrame // nil before the first frame
	ops     []opFrame
	point   *checkpoint // nil before the copy is complete
	steps   []step
	closed  time.Time // when the stream ended; zero before
	isTaken bool      // this server goes on with the task, or the copy was dropped
}

// Limits of copies.
const (
	// maxHeadBytes bounds the first frame, which names the client that the copy counts for.
	maxHeadBytes = 64 << 10
	// maxCopyOps is more operations than a request can have.
	maxCopyOps = 1 << 20
	// defaultMaxCopyBytes is half of what running tasks may take.
	defaultMaxCopyBytes = defaultMaxBytes / 2
)

// NewCopy returns a copy that the process of another server is about to send. It must be closed.
func (t *Tasks) NewCopy(from vedette.ServerID, process string) (*HeldCopy, error) {
	if t.cfg.Sharing == nil {
		return nil, vedette.Errorf(vedette.Unavailable, "this server does not share its database")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed()
	}
	return &HeldCopy{tasks: t, taking: newTurn(), from: from, process: process}, nil
}

// Reserve takes the memory of a frame of so many bytes, before it arrives. The error is vedette.Unavailable if there is none.
func (c *HeldCopy) Reserve(ctx context.Context, bytes int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, copyWait, fair.ErrTimeout)
	defer cancel()
	c.taking.Lock()
	defer c.taking.Unlock()
	var err error
	switch {
	case c.isGone():
		return errGone()
	case c.grant != nil:
		err = c.grant.Grow(ctx, bytes)
	case bytes > maxHeadBytes:
		return vedette.Errorf(vedette.Invalid, "the first frame of a copy has %d bytes, which is too much", bytes)
	default:
		c.intake, err = c.tasks.copyBudget.Acquire(ctx, string(c.from), maxHeadBytes)
	}
	if err != nil {
		return vedette.Errorf(vedette.Unavailable, "there is no memory for the copy of a task: %w", err)
	}
	c.last = bytes
	return nil
}

// Take takes in a frame that was reserved. When it returns, this server has what the frame says.
func (c *HeldCopy) Take(ctx context.Context, raw []byte) error {
	var f frame
	if err := exactjson.Unmarshal(raw, &f, bodyLimits); err != nil {
		return vedette.Errorf(vedette.Invalid, "a frame of a copy is not valid") // without quoting it
	}
	c.taking.Lock()
	defer c.taking.Unlock()
	switch {
	case c.isGone():
		return errGone()
	case f.Head != nil:
		return c.takeHead(ctx, f.Head)
	case c.grant == nil:
		return vedette.Errorf(vedette.Invalid, "a copy does not begin with its task")
	}
	if err := c.grant.Grow(ctx, f.bytes()-c.last); err != nil {
		return vedette.Errorf(vedette.Unavailable, "there is no memory for the copy of a task: %w", err)
	}
	c.grant.Shrink(c.last - f.bytes())
	c.tasks.mu.Lock()
	isClosed := c.tasks.closed
	c.tasks.mu.Unlock()
	switch {
	case f.End:
		c.isEnded = true
		c.drop()
		return nil
	case isClosed:
		return errClosed()
	case f.Continue:
		c.isEnded = true
		return c.tasks.continueHandedOver(ctx, c)
	}
	return c.add(&f)
}

// takeHead takes in the first frame. From then on, the copy counts for the client of the task.
func (c *HeldCopy) takeHead(ctx context.Context, h *headFrame) error {
	process, server := ownerServer(h.Owner)
	if c.grant != nil || h.ID == "" || h.Ops < 0 || h.Ops > maxCopyOps || server != c.from || !IsProcess(process, c.process) {
		return vedette.Errorf(vedette.Invalid, "the copy of a task is not one of a task of server %s", c.from)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, copyWait, fair.ErrTimeout)
	defer cancel()
	grant, err := c.tasks.copyBudget.Acquire(ctx, h.Source, (&frame{Head: h}).bytes())
	if err != nil {
		return vedette.Errorf(vedette.Unavailable, "there is no memory for the copy of a task: %w", err)
	}
	c.grant = grant
	c.intake.Release()
	c.mu.Lock()
	c.head = h
	c.mu.Unlock()
	c.tasks.mu.Lock()
	defer c.tasks.mu.Unlock()
	if len(c.tasks.copies) >= c.tasks.cfg.MaxTasks {
		return vedette.Errorf(vedette.Unavailable, "this server has copies of %d tasks, which is the limit", len(c.tasks.copies))
	}
	c.tasks.copies[c] = h.ID
	return nil
}

// add takes in a frame of the middle.
func (c *HeldCopy) add(f *frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case f.Op != nil && c.point == nil:
		c.ops = append(c.ops, *f.Op)
	case f.From != nil:
		c.beginOpLocked(f.From)
	case f.Step != nil && c.point != nil:
		c.stepLocked(f.Step)
	default:
		return vedette.Errorf(vedette.Invalid, "a frame of a copy is not one that this server knows")
	}
	return nil
}

// beginOpLocked forgets what came before an operation.
func (c *HeldCopy) beginOpLocked(from *checkpoint) {
	var freed int64
	for len(c.ops) > 0 && c.ops[0].Op < from.Op {
		freed += c.ops[0].bytes()
		c.ops = c.ops[1:]
	}
	for i := range c.steps {
		freed += c.steps[i].bytes()
	}
	if c.point != nil {
		freed += (&frame{From: c.point}).bytes()
	}
	c.point, c.steps = from, nil
	c.grant.Shrink(freed)
}

func (c *HeldCopy) stepLocked(s *step) {
	if n := len(c.steps); n > 0 && s.ID != "" && c.steps[n-1].ID == s.ID {
		c.grant.Shrink(c.steps[n-1].bytes()) // the answer replaces it
	}
	c.steps = addStep(c.steps, *s)
}

// IsEnded reports whether no frame follows.
func (c *HeldCopy) IsEnded() bool { return c.isEnded }

// Close says that the stream has ended. If the task has not, the copy stays: its server may have ended.
func (c *HeldCopy) Close() {
	c.intake.Release()
	c.mu.Lock()
	c.closed = time.Now()
	isWhole := c.point != nil
	c.mu.Unlock()
	if !isWhole {
		c.drop()
	}
}

func errGone() error {
	return vedette.Errorf(vedette.Conflict, "this server has taken the task over, or dropped its copy")
}

func (c *HeldCopy) isGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isTaken
}

// drop forgets the copy, and returns its memory.
func (c *HeldCopy) drop() {
	if c.take() != nil {
		c.grant.Release()
	}
}

// takenCopy is a copy that its holder does not have any more.
type takenCopy struct {
	head  headFrame
	ops   []opFrame
	point checkpoint
	steps []step
	grant *fair.Grant
}

// take takes the copy from those that are held; nil if it is not among them. Whoever calls it owns the grant.
func (c *HeldCopy) take() *takenCopy {
	c.tasks.mu.Lock()
	delete(c.tasks.copies, c)
	c.tasks.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isTaken || c.head == nil {
		return nil
	}
	c.isTaken = true
	taken := &takenCopy{head: *c.head, ops: c.ops, steps: c.steps, grant: c.grant}
	if c.point != nil {
		taken.point = *c.point
	}
	c.ops, c.steps = nil, nil
	c.point = nil
	return taken
}

// putBack makes a copy that was taken one that is held again.
func (c *HeldCopy) putBack(taken *takenCopy) {
	c.mu.Lock()
	c.isTaken = false
	c.ops, c.steps = taken.ops, taken.steps
	c.point = &taken.point
	c.mu.Unlock()
	c.tasks.mu.Lock()
	defer c.tasks.mu.Unlock()
	c.tasks.copies[c] = taken.head.ID
}

// Copies returns of how many tasks of other servers this one has copies.
func (t *Tasks) Copies() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.copies)
}
