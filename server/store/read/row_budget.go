package read

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/vedette-io/vedette"
)

// RowBudget limits the memory of all AttributesRows that several reads return, as estimated.
// Whoever can create objects decides how many an application has and how large their labels are.
// It is safe for concurrent use.
type RowBudget struct {
	limit int64
	used  atomic.Int64
}

// ErrRowBudget means that rows take more memory than their budget.
var ErrRowBudget = vedette.Errorf(vedette.Unavailable, "too many or too large objects would be shown together: this server does not hold them in memory")

// maxRowBytes is the budget of a read whose caller has none.
const maxRowBytes = 128 << 20

type rowBudgetKey struct{}

// WithRowBudget returns a context whose reads of attributes share a new budget.
func WithRowBudget(ctx context.Context, bytes int64) (context.Context, *RowBudget) {
	b := &RowBudget{limit: bytes}
	return context.WithValue(ctx, rowBudgetKey{}, b), b
}

func rowBudgetOf(ctx context.Context) *RowBudget {
	if b, ok := ctx.Value(rowBudgetKey{}).(*RowBudget); ok {
		return b
	}
	return &RowBudget{limit: maxRowBytes}
}

// Used returns how many bytes the rows take.
func (b *RowBudget) Used() int64 { return b.used.Load() }

func (b *RowBudget) take(bytes int64) error {
	if b.used.Add(bytes) > b.limit {
		return ErrRowBudget
	}
	return nil
}

// rowBytes estimates the memory of a row. Texts that rows share are counted for each.
func rowBytes(r *AttributesRow) int64 {
	n := int64(unsafe.Sizeof(*r)) + int64(len(r.Namespace)+len(r.Name)+len(r.UID)+len(r.Owner.UID)+len(r.Owner.Name)+len(r.Moniker.Cluster))
	for _, list := range [][]string{r.Images, r.LoadBalancers, r.Services} {
		for _, text := range list {
			n += int64(len(text)) + int64(unsafe.Sizeof(text))
		}
	}
	n += mapBytes(r.Labels) + mapBytes(r.TemplateLabels) + mapBytes(r.Selector)
	for _, c := range r.Containers {
		n += int64(len(c.Name)) + int64(unsafe.Sizeof(c))
	}
	return n
}

// mapBytes estimates the memory of labels.
func mapBytes(labels map[string]string) int64 {
	const perEntry = 48
	var n int64
	for label, value := range labels {
		n += int64(len(label)+len(value)) + perEntry
	}
	return n
}
