package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store/codec"
)

// columnPart is the column that a dictionary is for. The values are stored.
type columnPart int64

const (
	partHead columnPart = 1
	partBody columnPart = 2
)

type dictionaryKey struct {
	kindID int64
	part   columnPart
}

// dictionaries holds the compression dictionaries of all kinds. The first objects of a kind
// become its dictionary, which all accounts share. A dictionary is never
// changed, because rows need it; it is deleted with its kind. There are two per kind, or a few
// more if servers created one at the same time.
//
// Dictionaries that were used, and samples of kinds that have none yet, are in memory, both
// within the store's limits, because any agent may report thousands of kinds.
type dictionaries struct {
	mu          sync.Mutex
	current     map[dictionaryKey]*codec.Dictionary
	byID        map[int64]*codec.Dictionary
	samples     map[dictionaryKey]*codec.Sample
	cachedBytes int // of byID
	sampleBytes int // of samples
}

const selectNewestDictionary = `SELECT id, bytes FROM dictionaries WHERE kind_id = ? AND part = ? ORDER BY id DESC LIMIT 1`

// forKind returns the newest dictionary of a kind, or the empty one if it has none yet.
func (d *dictionaries) forKind(ctx context.Context, s *Store, key dictionaryKey) (*codec.Dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.current[key]; found != nil {
		return found, nil
	}
	var id int64
	var content []byte
	err := s.queryOne(ctx, scanInto(&id, &content), selectNewestDictionary, key.kindID, int64(key.part))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read the dictionary of kind %d: %w", key.kindID, err)
	}
	return d.setCurrentLocked(s, key, codec.NewDictionary(id, content)), nil
}

func (d *dictionaries) setCurrentLocked(s *Store, key dictionaryKey, created *codec.Dictionary) *codec.Dictionary {
	created = d.cacheLocked(s, created)
	d.current[key] = created
	return created
}

// cacheLocked keeps a dictionary in memory. If that exceeds the limit, all others are dropped;
// they are read again when they are needed.
func (d *dictionaries) cacheLocked(s *Store, created *codec.Dictionary) *codec.Dictionary {
	if d.samples == nil {
		d.samples = map[dictionaryKey]*codec.Sample{}
	}
	if d.byID == nil || d.cachedBytes+created.Size() > s.limits.dictionaries {
		d.current, d.byID, d.cachedBytes = map[dictionaryKey]*codec.Dictionary{}, map[int64]*codec.Dictionary{0: codec.NewDictionary(0, nil)}, 0
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
func (d *dictionaries) addSamplesLocked(s *Store, key dictionaryKey, texts []sampleText) *codec.Sample {
	kindSample := d.samples[key]
	if kindSample == nil {
		kindSample = codec.NewSample()
		d.samples[key] = kindSample
	}
	before := kindSample.Size()
	for _, t := range texts {
		kindSample.Add(t.application, t.text)
	}
	d.sampleBytes += kindSample.Size() - before
	for other, candidate := range d.samples {
		if d.sampleBytes > s.limits.samples && candidate != kindSample {
			d.dropSamplesLocked(other)
		}
	}
	return kindSample
}

func (d *dictionaries) dropSamplesLocked(key dictionaryKey) {
	d.sampleBytes -= d.samples[key].Size()
	delete(d.samples, key)
}

// train adds texts to a kind's sample, and creates the kind's dictionary as soon as the sample
// is full. Until then it returns the empty dictionary.
func (d *dictionaries) train(ctx context.Context, s *Store, key dictionaryKey, texts []sampleText) (*codec.Dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.current[key]; found != nil && found.ID() != 0 {
		return found, nil
	}
	kindSample := d.addSamplesLocked(s, key, texts)
	if !kindSample.IsFull() {
		return d.byID[0], nil
	}
	created, err := s.insertDictionary(ctx, key, kindSample.Content())
	if err != nil {
		return nil, err
	}
	d.dropSamplesLocked(key)
	return d.setCurrentLocked(s, key, created), nil
}

type sampleText struct {
	application string
	text        []byte
}

// insertDictionary commits a dictionary in a transaction of its own, because rows may refer to it
// only after that. If another server has stored one meanwhile, that one is returned.
func (s *Store) insertDictionary(ctx context.Context, key dictionaryKey, content []byte) (*codec.Dictionary, error) {
	var id int64
	var stored []byte
	err := s.write(ctx, func(ctx context.Context, tx *transaction) error {
		err := tx.queryRow(ctx, selectNewestDictionary, key.kindID, int64(key.part)).Scan(&id, &stored)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if _, err := tx.exec(ctx, `INSERT INTO dictionaries (kind_id, part, bytes) VALUES (?, ?, ?)`, key.kindID, int64(key.part),
			content); err != nil {
			return err
		}
		return tx.queryRow(ctx, selectNewestDictionary, key.kindID, int64(key.part)).Scan(&id, &stored)
	})
	if err != nil {
		return nil, fmt.Errorf("store the dictionary of kind %d: %w", key.kindID, err)
	}
	return codec.NewDictionary(id, stored), nil
}

// decompress appends the text of a compressed column to dst.
func (d *dictionaries) decompress(ctx context.Context, s *Store, dst, column []byte) ([]byte, error) {
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
	found, err := d.get(ctx, s, id)
	if err != nil {
		return nil, err
	}
	return found.Decompress(dst, frame)
}

func (d *dictionaries) get(ctx context.Context, s *Store, id int64) (*codec.Dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.byID[id]; found != nil {
		return found, nil
	}
	var content []byte
	if id != 0 {
		err := s.queryOne(ctx, scanInto(&content), `SELECT bytes FROM dictionaries WHERE id = ?`, id)
		if err != nil {
			return nil, fmt.Errorf("read dictionary %d: %w", id, err)
		}
	}
	return d.cacheLocked(s, codec.NewDictionary(id, content)), nil
}

// compressObjects sets the compressed columns of rows, which belong to the objects of the same
// index.
func (s *Store) compressObjects(ctx context.Context, objects []*vedette.Object, rows []objectRow) error {
	byKind := map[int64][]int{}
	for i := range rows {
		byKind[rows[i].kindID] = append(byKind[rows[i].kindID], i)
	}
	for kindID, members := range byKind {
		if err := s.compressKind(ctx, kindID, members, objects, rows); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) compressKind(ctx context.Context, kindID int64, members []int, objects []*vedette.Object, rows []objectRow) error {
	heads, bodies := make([]sampleText, len(members)), make([]sampleText, len(members))
	for at, i := range members {
		stored := *objects[i]
		stored.Summary = attributes.TrimSummary(stored.Summary)
		if len(rows[i].owner) > 0 { // the column has it
			stored.Owner.UID = ""
		}
		heads[at] = sampleText{rows[i].application, codec.EncodeHead(&stored)}
		bodies[at] = sampleText{rows[i].application, codec.FoldBody(objects[i])}
	}
	return errors.Join(
		s.compressPart(ctx, dictionaryKey{kindID, partHead}, heads, func(at int, b []byte) { rows[members[at]].head = b }),
		s.compressPart(ctx, dictionaryKey{kindID, partBody}, bodies, func(at int, b []byte) { rows[members[at]].body = b }))
}

func (s *Store) compressPart(ctx context.Context, key dictionaryKey, texts []sampleText, emit func(int, []byte)) error {
	d, err := s.dicts.forKind(ctx, s, key)
	if err == nil && d.ID() == 0 {
		d, err = s.dicts.train(ctx, s, key, texts)
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // compressing takes a while, and the caller has given up
	}
	return d.Compress(len(texts), func(i int) []byte { return texts[i].text }, emit)
}
