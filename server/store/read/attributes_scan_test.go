package read

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestAttributeRowsAreLimited adds one row more than the limit.
func TestAttributeRowsAreLimited(t *testing.T) {
	c := attributeScanner{accounts: map[int64]vedette.AccountName{1: "prod"}, kinds: map[int64]vedette.Kind{2: {Name: "Pod"}}, limit: 3, budget: &RowBudget{limit: 1 << 20},
		id: 1<<accountShift + 2, name: "web"}
	for i := range 4 {
		err := c.add()
		if isOver := i == 3; (vedette.KindOf(err) == vedette.Unavailable) != isOver || isOver && !strings.Contains(err.Error(), "more than 3 objects") {
			t.Errorf("row %d: got %v, want an error only for the last", i, err)
		}
	}
	if c.count() != 3 {
		t.Errorf("got %d rows, want 3", c.count())
	}
}
