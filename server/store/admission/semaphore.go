package admission

import (
	"cmp"
	"context"

	"github.com/vedette-io/vedette/internal/fair"
)

// Semaphore limits the number of concurrent transactions, and admits those with a waiting
// caller before those that write much, and those that agents cause. Without it they would wait in the
// pool of connections, which admits in any order. Use NewSemaphore to create one.
type Semaphore struct{ line *fair.Line }

// maxBypassed is the number of high waiters that are admitted before a low one, so that
// feeds make progress under a constant load of operations.
const maxBypassed = 8

// The classes of transactions.
const (
	high = iota
	low
)

// Keys of transactions that no source has sent.
const (
	anyCaller = ""           // of all at high priority, in the order of their arrival
	ownWork   = "the server" // of the server itself, at low priority
)

// NewSemaphore returns a semaphore with that many permits. A source has at most three quarters of them, so
// that the transactions of one whose accounts are locked leave some to the others. Callers at high priority
// may have all.
func NewSemaphore(permits int) *Semaphore {
	return &Semaphore{fair.New(fair.Config{Capacity: int64(permits), Share: max(1, int64(permits)*3/4), Weight: weight,
		Classes: []int{maxBypassed, 1}})}
}

// weight gives callers at high priority two shares, which are more than there is.
func weight(key string) int {
	if key == anyCaller {
		return 2
	}
	return 1
}

// sourceKey is the key of the source in a context.
type sourceKey struct{}

// WithSource returns a context for what a source causes, such as the host of an agent. All of its transactions have low
// priority, however short they are, because an agent can cause as many as it likes.
func WithSource(ctx context.Context, source string) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

func sourceOf(ctx context.Context) string {
	source, _ := ctx.Value(sourceKey{}).(string)
	return source
}

// Acquire waits for a permit, ahead of all callers of AcquireLow, unless ctx has a source. The caller must release
// it. The error is that of ctx.
func (s *Semaphore) Acquire(ctx context.Context) (*fair.Grant, error) {
	if source := sourceOf(ctx); source != "" {
		return s.wait(ctx, low, source)
	}
	return s.wait(ctx, high, anyCaller)
}

// AcquireLow is Acquire at low priority. Sources take turns with each other, and with the server itself, so that a source
// with many waiters delays only its own.
func (s *Semaphore) AcquireLow(ctx context.Context) (*fair.Grant, error) {
	return s.wait(ctx, low, cmp.Or(sourceOf(ctx), ownWork))
}

func (s *Semaphore) wait(ctx context.Context, class int, key string) (*fair.Grant, error) {
	permit, err := s.line.AcquireClass(ctx, class, key, 1)
	if err != nil {
		return nil, ctx.Err() // which the classes of errors know, unlike its cause
	}
	return permit, nil
}
