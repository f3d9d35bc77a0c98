package queue

import "slices"

// waitCounts counts feeds that wait. With hundreds of accounts, tens of thousands of feeds wait, and most
// calls can grant nothing: the counts show that without a look at each ticket.
type waitCounts struct{ fast, slow int }

func (w *waitCounts) add(t *Ticket, n int) {
	if t.Slow {
		w.slow += n
	} else {
		w.fast += n
	}
}

// dispatchLocked grants as many tickets as the budget allows.
func (q *Queue) dispatchLocked() {
	for i := 0; i < len(q.order) && q.hasRoomLocked(q.counts); {
		a := q.order[i]
		if !q.allowsLocked(a, a.counts) {
			i++ // the others need not wait for this account
			continue
		}
		q.grantLocked(a, slices.IndexFunc(a.waiting, func(t *Ticket) bool {
			one := waitCounts{}
			one.add(t, 1)
			return q.allowsLocked(a, one)
		}))
		i = 0
	}
}

// hasRoomLocked reports whether one of some waiting feeds may begin, as far as the limits for all
// accounts are concerned.
func (q *Queue) hasRoomLocked(w waitCounts) bool {
	return q.total < q.budget.Total &&
		(w.fast > 0 && q.fast < q.budget.Fast || w.slow > 0 && q.slow < q.budget.maxSlowStarts())
}

// allowsLocked reports whether one of some waiting feeds of an account may begin. Only one slow snapshot
// of an account begins, because it waits for the slow permit of the account.
func (q *Queue) allowsLocked(a *Account, w waitCounts) bool {
	if a.slow > 0 {
		w.slow = 0
	}
	return a.running < q.budget.PerAccount && q.hasRoomLocked(w)
}

func (q *Queue) grantLocked(a *Account, i int) {
	t := a.waiting[i]
	q.countLocked(a, t)
	a.granted++
	q.removeLocked(a, i)
	if (t.Slow || a.granted >= TurnLength) && len(a.waiting) > 0 {
		q.endTurnLocked(a)
	}
}

// countLocked grants a ticket, and counts its snapshot.
func (q *Queue) countLocked(a *Account, t *Ticket) {
	q.total++
	a.running++
	if t.Slow {
		q.slow++
		a.slow++
	} else {
		q.fast++
		if t.verifies {
			q.verify++
		}
	}
	close(t.Granted)
}

// endTurnLocked puts an account that waits behind all others.
func (q *Queue) endTurnLocked(a *Account) {
	a.granted = 0
	q.order = append(removeAccount(q.order, a), a)
}

func (q *Queue) removeLocked(a *Account, i int) {
	a.counts.add(a.waiting[i], -1)
	q.counts.add(a.waiting[i], -1)
	a.waiting = slices.Delete(a.waiting, i, i+1)
	if len(a.waiting) == 0 {
		q.order = removeAccount(q.order, a)
	}
}

func removeAccount(order []*Account, a *Account) []*Account {
	return slices.DeleteFunc(order, func(other *Account) bool { return other == a })
}
