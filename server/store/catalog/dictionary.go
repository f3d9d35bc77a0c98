package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/vedette-io/vedette/server/store/codec"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// columnPart is the column that a dictionary is for. The values are stored.
type columnPart int64

const (
	PartHead columnPart = 1
	PartBody columnPart = 2
)

// DictionaryKey names what a dictionary is for.
type DictionaryKey struct {
	KindID int64
	Part   columnPart
}

// Dictionaries holds the compression dictionaries of all kinds. The first objects of a kind
// become its dictionary, which all accounts share. A dictionary is never
// changed, because rows need it; it is deleted with its kind. There are two per kind, or a few
// more if servers created one at the same time.
//
// Dictionaries that were used, and samples of kinds that have none yet, are in memory, both
// within limits, because any agent may report thousands of kinds.
//
// Secrets are redacted before, so no dictionary contains one. Data of an account in a dictionary outlives the account.
type Dictionaries struct {
	db     *sqldb.DB
	limits dictionaryLimits

	mu          sync.Mutex
	current     map[DictionaryKey]*codec.Dictionary
	byID        map[int64]*codec.Dictionary
	samples     map[DictionaryKey]*codec.Sample
	cachedBytes int // of byID
	sampleBytes int // of samples
}

// dictionaryLimits are bytes of memory, for all agents.
type dictionaryLimits struct{ dictionaries, samples int }

// NewDictionaries returns the dictionaries of a database. They are read when they are needed.
func NewDictionaries(db *sqldb.DB) *Dictionaries {
	return &Dictionaries{db: db, limits: dictionaryLimits{dictionaries: 64 << 20, samples: 32 << 20}}
}

const selectNewestDictionary = `SELECT id, bytes FROM dictionaries WHERE kind_id = ? AND part = ? ORDER BY id DESC LIMIT 1`

// ForKind returns the newest dictionary of a kind, or the empty one if it has none yet.
func (d *Dictionaries) ForKind(ctx context.Context, key DictionaryKey) (*codec.Dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.current[key]; found != nil {
		return found, nil
	}
	var id int64
	var content []byte
	err := d.db.QueryOne(ctx, sqldb.ScanInto(&id, &content), sqldb.Named("read the newest dictionary", selectNewestDictionary), key.KindID,
		int64(key.Part))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read the dictionary of kind %d: %w", key.KindID, err)
	}
	return d.setCurrentLocked(key, codec.NewDictionary(id, content)), nil
}

func (d *Dictionaries) setCurrentLocked(key DictionaryKey, created *codec.Dictionary) *codec.Dictionary {
	created = d.cacheLocked(created)
	d.current[key] = created
	return created
}

// cacheLocked keeps a dictionary in memory. If that exceeds the limit, all others are dropped;
// they are read again when they are needed.
func (d *Dictionaries) cacheLocked(created *codec.Dictionary) *codec.Dictionary {
	if d.samples == nil {
		d.samples = map[DictionaryKey]*codec.Sample{}
	}
	if d.byID == nil || d.cachedBytes+created.Size() > d.limits.dictionaries {
		d.current = map[DictionaryKey]*codec.Dictionary{}
		d.byID = map[int64]*codec.Dictionary{0: codec.NewDictionary(0, nil)}
		d.cachedBytes = 0
	}
	if found := d.byID[created.ID()]; found != nil {
		if created.ID() == 0 {
			return found
		}
		d.cachedBytes -= found.Size()
	}
	d.byID[created.ID()] = created
	d.cachedBytes += created.Size()
	return created
}

// addSamplesLocked adds texts to a kind's sample. If all samples together exceed the limit, those
// of arbitrary other kinds are dropped and start over.
func (d *Dictionaries) addSamplesLocked(key DictionaryKey, texts []SampleText) *codec.Sample {
	kindSample := d.samples[key]
	if kindSample == nil {
		kindSample = codec.NewSample()
		d.samples[key] = kindSample
	}
	before := kindSample.Size()
	for _, t := range texts {
		kindSample.Add(t.Application, t.Text)
	}
	d.sampleBytes += kindSample.Size() - before
	for other, candidate := range d.samples {
		if d.sampleBytes > d.limits.samples && candidate != kindSample {
			d.dropSamplesLocked(other)
		}
	}
	return kindSample
}

func (d *Dictionaries) dropSamplesLocked(key DictionaryKey) {
	d.sampleBytes -= d.samples[key].Size()
	delete(d.samples, key)
}

// Train adds texts to a kind's sample, and creates the kind's dictionary as soon as the sample
// is full. Until then it returns the empty dictionary.
func (d *Dictionaries) Train(ctx context.Context, key DictionaryKey, texts []SampleText) (*codec.Dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.current[key]; found != nil && found.ID() != 0 {
		return found, nil
	}
	kindSample := d.addSamplesLocked(key, texts)
	if !kindSample.IsFull() {
		return d.byID[0], nil
	}
	created, err := d.insert(ctx, key, kindSample.Content())
	if err != nil {
		return nil, err
	}
	d.dropSamplesLocked(key)
	return d.setCurrentLocked(key, created), nil
}

// SampleText is a text from which a dictionary may be made.
type SampleText struct {
	Application string
	Text        []byte
}

// insert commits a dictionary in a transaction of its own, because rows may refer to it
// only after that. If another server has stored one meanwhile, that one is returned.
func (d *Dictionaries) insert(ctx context.Context, key DictionaryKey, content []byte) (*codec.Dictionary, error) {
	var id int64
	var stored []byte
	err := d.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		err := tx.QueryRow(ctx, sqldb.Named("look for a dictionary", selectNewestDictionary), key.KindID, int64(key.Part)).Scan(&id, &stored)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if _, err := tx.Exec(ctx, sqldb.Named("insert a dictionary", `INSERT INTO dictionaries (kind_id, part, bytes) VALUES (?, ?, ?)`), key.KindID, int64(key.Part),
			content); err != nil {
			return err
		}
		return tx.QueryRow(ctx, sqldb.Named("read the inserted dictionary", selectNewestDictionary), key.KindID, int64(key.Part)).Scan(&id,
			&stored)
	})
	if err != nil {
		return nil, fmt.Errorf("store the dictionary of kind %d: %w", key.KindID, err)
	}
	return codec.NewDictionary(id, stored), nil
}

// Decompress appends the text of a compressed column to dst.
func (d *Dictionaries) Decompress(ctx context.Context, dst, column []byte) ([]byte, error) {
	if len(column) == 0 {
		return dst, nil
	}
	id, frame, err := codec.ParseColumn(column)
	if err != nil {
		return nil, err
	}
	if id == codec.Uncompressed {
		return append(dst, frame...), nil
	}
	found, err := d.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return found.Decompress(dst, frame)
}

// Get returns the dictionary with an id, which is 0 for the empty one.
func (d *Dictionaries) Get(ctx context.Context, id int64) (*codec.Dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.byID[id]; found != nil {
		return found, nil
	}
	var content []byte
	if id != 0 {
		err := d.db.QueryOne(ctx, sqldb.ScanInto(&content), sqldb.Named("read a dictionary", `SELECT bytes FROM dictionaries WHERE id = ?`), id)
		if err != nil {
			return nil, fmt.Errorf("read dictionary %d: %w", id, err)
		}
	}
	return d.cacheLocked(codec.NewDictionary(id, content)), nil
}
