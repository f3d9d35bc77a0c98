package queue

import "testing"

func TestBudgetAtMost(t *testing.T) {
	for _, tt := range []struct {
		name              string
		total, perAccount int
		want              Budget
	}{
		{"the predecessor's defaults change nothing", 1000, 50, Budget{Fast: 8, Total: 1000, PerAccount: 4}},
		{"0 sets no limit", 0, 0, Budget{Fast: 8, Total: 1000, PerAccount: 4}},
		{"a larger total allows more lists of API servers that hang", 5000, 50, Budget{Fast: 8, Total: 5000, PerAccount: 4}},
		{"a small total also bounds the fast ones", 3, 2, Budget{Fast: 3, Total: 3, PerAccount: 2}},
		{"one at a time", 1, 1, Budget{Fast: 1, Total: 1, PerAccount: 1}},
	} {
		if got := (Budget{}).AtMost(tt.total, tt.perAccount); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// BenchmarkSnapshotQueue makes all feeds of an agent with 500 accounts wait, and ends them.
func BenchmarkSnapshotQueue(b *testing.B) {
	for b.Loop() {
		q, accounts := New(Budget{}), make([]Account, 500)
		var tickets []*Ticket
		for i := range 60 * len(accounts) {
			tickets = append(tickets, q.Enqueue(&accounts[i%len(accounts)]))
		}
		for i, t := range tickets {
			q.Cancel(&accounts[i%len(accounts)], t)
		}
	}
}
