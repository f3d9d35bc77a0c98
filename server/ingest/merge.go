package ingest

import "maps"

// mergeNext adds to a queue's first task the batches that follow it, as far as they fit
// into one. While an account is stalled each of its records may come as a batch of its
// own; stored one by one, a second's worth of changes would take minutes to catch up.
// It returns the tasks whose batches were added. Lane.mu must be held.
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

// rows counts what a batch writes.
func (b *batch) rows() int { return len(b.upserts) + len(b.deletes) + len(b.drops) + len(b.feeds) }

// merge adds a later batch of the same account and term, as if its steps had been added
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
	for feed, u := range later.feeds {
		update := b.feed(feed)
		if u.Mark != nil {
			update.Mark = u.Mark
		}
		if u.State != "" {
			update.State, update.Message = u.State, u.Message
		}
		if !u.Synced.IsZero() {
			update.Synced, update.SnapshotMark = u.Synced, u.SnapshotMark
		}
	}
}
