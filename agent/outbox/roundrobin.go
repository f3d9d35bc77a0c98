package outbox

// roundRobin is a ring of the non-empty queues of one priority. It serves them in turn, so
// that a busy feed cannot starve a quiet one.
type roundRobin struct {
	queues []*queue
}

func (r *roundRobin) add(q *queue) {
	r.queues = append(r.queues, q)
	q.readyIn = r
}

func (r *roundRobin) remove(q *queue) {
	for i, other := range r.queues {
		if other == q {
			r.queues = append(r.queues[:i], r.queues[i+1:]...)
			break
		}
	}
	q.readyIn = nil
}

// next removes and returns the next queue, or nil.
func (r *roundRobin) next() *queue {
	if len(r.queues) == 0 {
		return nil
	}
	q := r.queues[0]
	r.queues = r.queues[1:]
	q.readyIn = nil
	return q
}
