package ingest

import "github.com/vedette-io/vedette/server/store/commit"

// changeLog holds the newest published batches of changes, within a limit of bytes. Batches are numbered
// without gaps.
type changeLog struct {
	batches [][]commit.Change // the oldest first
	first   uint64            // number of batches[0]
	bytes   int
}

// maxLogBytes bounds the log of a hub, which its subscribers share. It holds some 40,000 changes, so that a
// subscriber may stand still for seconds while agents send their first snapshots.
const maxLogBytes = 8 << 20

// changeBytes is the approximate size of a change without its texts.
const changeBytes = 128

// end returns the number of the next batch.
func (l *changeLog) end() uint64 { return l.first + uint64(len(l.batches)) }

// at returns a batch, unless it was dropped.
func (l *changeLog) at(n uint64) ([]commit.Change, bool) {
	if n < l.first || n >= l.end() {
		return nil, false
	}
	return l.batches[n-l.first], true
}

// lose makes the log look as if a batch was missing.
func (l *changeLog) lose() {
	l.first = l.end() + 1
	l.batches, l.bytes = nil, 0
}

// append adds a batch, and drops the oldest ones until the limit holds. A batch that exceeds the limit alone
// is dropped too, so that subscribers see that they lost it.
func (l *changeLog) append(batch []commit.Change) {
	l.batches = append(l.batches, batch)
	l.bytes += sizeOf(batch)
	for l.bytes > maxLogBytes {
		l.bytes -= sizeOf(l.batches[0])
		l.batches[0] = nil // the array outlives the slice
		l.batches = l.batches[1:]
		l.first++
	}
}

// clear drops all batches and keeps their numbers used.
func (l *changeLog) clear() {
	l.first = l.end()
	l.batches = nil
	l.bytes = 0
}

func sizeOf(batch []commit.Change) int {
	size := 0
	for i := range batch {
		c := &batch[i]
		size += changeBytes + len(c.Account) + len(c.Key.Kind.Group) + len(c.Key.Kind.Name) +
			len(c.Key.Namespace) + len(c.Key.Name) + len(c.Version)
	}
	return size
}
