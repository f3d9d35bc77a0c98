package write

import (
	"context"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/store/admission"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/commit"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

const IndexChunkSize = indexChunkSize

func (w *Writer) Locks() *admission.Locks { return w.locks }

// AfterLookup calls do with the number of keys after each lookup of them.
func (w *Writer) AfterLookup(do func(keys int)) {
	lookup := w.dialect.lookup
	w.dialect.lookup = func(ctx context.Context, db *sqldb.DB, accountID int64, keys []catalog.Key, found func(storedRow)) error {
		err := lookup(ctx, db, accountID, keys, found)
		do(len(keys))
		return err
	}
}

// BeforeUpsert calls do with the number of rows before each statement that writes objects.
func (w *Writer) BeforeUpsert(do func(rows int)) {
	upsert := w.dialect.upsert
	w.dialect.upsert = func(ctx context.Context, tx *sqldb.Tx, accountID int64, rows []objectRow) error {
		do(len(rows))
		return upsert(ctx, tx, accountID, rows)
	}
}

// CommitWithoutAnswer commits a batch, or does not, and returns an error as if the database had not answered.
func (w *Writer) CommitWithoutAnswer(ctx context.Context, b commit.Batch, isCommitted bool) error {
	prepared, err := w.prepareBatch(ctx, b)
	if err != nil {
		return err
	}
	defer prepared.lock.Close()
	if err := prepared.lock.Lock(ctx); err != nil {
		return err
	}
	defer prepared.lock.Unlock()
	p, err := w.planChunk(ctx, &b, prepared)
	if err != nil {
		return err
	}
	_, err = w.writePlan(ctx, p, func(ctx context.Context, do func(context.Context, *sqldb.Tx) error) error {
		if isCommitted {
			if err := w.db.Write(ctx, do); err != nil {
				return err
			}
		}
		return errNoAnswer
	})
	return err
}

var errNoAnswer = vedette.Errorf(vedette.Unavailable, "the database does not answer")

// SettleOld publishes what is stored of accounts that nobody writes any more.
func (w *Writer) SettleOld(ctx context.Context) { w.settleOld(ctx, time.Now().Add(settleTime)) }

// Chunks returns the chunks in which a batch is written.
func Chunks(b commit.Batch, limit int) (chunks []commit.Batch) {
	p := &preparedBatch{batch: b}
	for more := true; more; {
		var chunk commit.Batch
		chunk, more = p.nextChunk(limit)
		chunks = append(chunks, chunk)
	}
	return chunks
}

// SetLimits sets what one account may declare, and how many kinds agents may introduce.
func (w *Writer) SetLimits(feeds, kinds, namespaces int, perAgent, all int64) {
	w.limits = limits{feeds: feeds, kinds: kinds, namespaces: namespaces, perAgent: perAgent, all: all}
}

// ScanFeed reads the rows of a feed in chunks.
func (w *Writer) ScanFeed(ctx context.Context, accountID int64, feed catalog.Feed, size int) error {
	return w.scanFeedRows(ctx, accountID, feed, size, func([]indexRow) error { return nil })
}

// Remove deletes rows in a transaction.
func (w *Writer) Remove(ctx context.Context, accountID int64, keys []catalog.Key) error {
	sortKeys(keys)
	return w.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error { return w.dialect.remove(ctx, tx, accountID, keys) })
}

var MySQLUpsertStatement = mysqlUpsertStatement
