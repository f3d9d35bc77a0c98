package ingest

import "maps"

// mergeNext adds the batches that follow a queue's first task to it, as far as they fit, and
// returns the tasks whose batches it added. While an account is stalled, each of its records may
// arrive as a batch of its own, and storing a second's worth of changes one by one would take
// minutes. The caller must hold Pipeline.mu.
func (q *queue) mergeNext(first *task) (merged []*task) {
	if first.batch == nil {
		return nil
	}
	rows, bytes := first.batch.rows(), first.bytes
	for len(q.tasks) > 0 {
		next := q.tasks[0]
		if next.batch == nil || next.batch.term != first.batch.term {
			break
		}
		rows, bytes = rows+next.batch.rows(), bytes+next.bytes
		if rows > maxBatchRows || bytes > maxBatchBytes {
			break
		}
		first.batch.merge(next.batch)
		merged = append(merged, next)
		q.tasks = q.tasks[1:]
	}
	return merged
}

// rows returns the number of rows that a batch writes.
func (b *batch) rows() int { return len(b.upserts) + len(b.deletes) + len(b.drops) + len(b.feeds) }

// merge adds a later batch of the same account and term, with the same result as adding its steps
// one by one.
func (b *batch) merge(later *batch) {
	for key, object := range later.upserts {
		delete(b.deletes, key)
		b.upserts[key] = object
	}
	for key, version := range later.deletes {
		delete(b.upserts, key)
		b.deletes[key] = version
	}
	b.drops = append(b.drops, later.drops...)
	maps.Copy(b.touched, later.touched)
	maps.Copy(b.verified, later.verified)
	for feed, u := range later.feeds {
		update := b.feed(feed)
		if u.Mark != nil {
			moveMark(update, *u.Mark, u.IsRemembered)
		}
		if u.State != "" {
			update.State, update.Message = u.State, u.Message
		}
		if !u.Verified.IsZero() {
			update.Verified, update.Drift = u.Verified, update.Drift+u.Drift
		}
		if !u.Synced.IsZero() {
			update.Synced, update.SnapshotMark = u.Synced, u.SnapshotMark
		}
	}
}
