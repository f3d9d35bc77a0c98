package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/vedette-io/vedette"
)

// columnPart says which column a dictionary is for. The values are stored.
type columnPart int64

const (
	partHead columnPart = 1
	partBody columnPart = 2
)

type dictionaryKey struct {
	kindID int64
	part   columnPart
}

// dictionaries keep what compresses each kind. The first objects of a kind
// become its dictionary, which all accounts share. A dictionary is never
// deleted nor changed, since rows need it; there are two per kind, or a few more
// where servers met a kind at the same time.
//
// In memory are those that were used, and the samples of kinds that have none yet, both
// within the store's limits: any agent may bring thousands of kinds.
type dictionaries struct {
	mu          sync.Mutex
	current     map[dictionaryKey]*dictionary
	byID        map[int64]*dictionary
	samples     map[dictionaryKey]*sample
	cachedBytes int // bytes of byID
	sampleBytes int // bytes of samples
}

const (
	dictionarySize = 48 << 10 // bytes: longer ones gain little and take time to load
	sampleCount    = 32
	sampleSize     = 8 << 10 // of one object's beginning
)

// sample gathers a kind's first objects. One from each application at most, as
// long as that fills it: objects of one Deployment teach less than those of ten.
type sample struct {
	texts        [][]byte
	spare        [][]byte        // of applications that are there already
	textBytes    int             // of texts
	totalBytes   int             // bytes of texts and spare
	applications map[string]bool // applications
}

func (s *sample) add(application string, text []byte) {
	if len(text) == 0 {
		return
	}
	text = append([]byte(nil), text[:min(len(text), sampleSize)]...)
	if s.applications[application] {
		if len(s.spare) < sampleCount {
			s.spare = append(s.spare, text)
			s.totalBytes += len(text)
		}
		return
	}
	if s.textBytes < dictionarySize {
		s.applications[application] = true
		s.texts = append(s.texts, text)
		s.textBytes += len(text)
		s.totalBytes += len(text)
	}
}

// full reports whether there is enough to make a dictionary of.
func (s *sample) full() bool {
	return len(s.texts)+len(s.spare) >= sampleCount || s.textBytes >= dictionarySize
}

// build joins the samples. What differs most from the rest stands first:
// zstd spends fewer bits on what is near the end.
func (s *sample) build() []byte {
	var joined []byte
	remaining := dictionarySize - s.textBytes
	for _, text := range s.spare {
		if len(text) <= remaining {
			joined = append(joined, text...)
			remaining -= len(text)
		}
	}
	for _, text := range s.texts {
		joined = append(joined, text...)
	}
	return joined[max(0, len(joined)-dictionarySize):]
}

// forKind returns the newest dictionary, the empty one where none is made yet.
func (d *dictionaries) forKind(ctx context.Context, s *Store, key dictionaryKey) (*dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.current[key]; found != nil {
		return found, nil
	}
	found := &dictionary{}
	err := s.queryOne(ctx, scanInto(&found.id, &found.bytes), `SELECT id, bytes FROM dictionaries WHERE kind_id = ? AND part = ? ORDER BY id DESC LIMIT 1`,
		key.kindID, int64(key.part))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read the dictionary of kind %d: %w", key.kindID, err)
	}
	return d.setCurrentLocked(s, key, found), nil
}

func (d *dictionaries) setCurrentLocked(s *Store, key dictionaryKey, created *dictionary) *dictionary {
	created = d.cacheLocked(s, created)
	d.current[key] = created
	return created
}

// cacheLocked keeps a dictionary in memory. Where that is too much, the others are let
// go: they are read again when they are used.
func (d *dictionaries) cacheLocked(s *Store, created *dictionary) *dictionary {
	if d.samples == nil {
		d.samples = map[dictionaryKey]*sample{}
	}
	if d.byID == nil || d.cachedBytes+len(created.bytes) > s.limits.dictionaries {
		d.current, d.byID, d.cachedBytes = map[dictionaryKey]*dictionary{}, map[int64]*dictionary{0: {}}, 0
	}
	if found := d.byID[created.id]; found != nil {
		if created.id == 0 {
			return found
		}
		d.cachedBytes -= len(found.bytes)
	}
	d.byID[created.id] = created
	d.cachedBytes += len(created.bytes)
	return created
}

// addSamplesLocked adds texts to a kind's sample. Where all samples have too much, others
// are let go, whichever: those kinds begin anew.
func (d *dictionaries) addSamplesLocked(s *Store, key dictionaryKey, texts []sampleText) *sample {
	kindSample := d.samples[key]
	if kindSample == nil {
		kindSample = &sample{applications: map[string]bool{}}
		d.samples[key] = kindSample
	}
	before := kindSample.totalBytes
	for _, t := range texts {
		kindSample.add(t.application, t.text)
	}
	d.sampleBytes += kindSample.totalBytes - before
	for other, candidate := range d.samples {
		if d.sampleBytes > s.limits.samples && candidate != kindSample {
			d.dropSamplesLocked(other)
		}
	}
	return kindSample
}

func (d *dictionaries) dropSamplesLocked(key dictionaryKey) {
	d.sampleBytes -= d.samples[key].totalBytes
	delete(d.samples, key)
}

// train makes a kind's dictionary when enough of its objects have come by.
func (d *dictionaries) train(ctx context.Context, s *Store, key dictionaryKey, texts []sampleText) (*dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.current[key]; found != nil && found.id != 0 {
		return found, nil
	}
	kindSample := d.addSamplesLocked(s, key, texts)
	if !kindSample.full() {
		return d.byID[0], nil
	}
	created, err := s.insertDictionary(ctx, key, kindSample.build())
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

// insertDictionary commits it before any row can need it. Where another server
// was faster, its dictionary serves.
func (s *Store) insertDictionary(ctx context.Context, key dictionaryKey, bytes []byte) (*dictionary, error) {
	created := &dictionary{}
	err := s.write(ctx, func(ctx context.Context, tx *transaction) error {
		const selectNewest = `SELECT id, bytes FROM dictionaries WHERE kind_id = ? AND part = ? ORDER BY id DESC LIMIT 1`
		err := tx.queryRow(ctx, selectNewest, key.kindID, int64(key.part)).Scan(&created.id, &created.bytes)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if _, err := tx.exec(ctx, `INSERT INTO dictionaries (kind_id, part, bytes) VALUES (?, ?, ?)`, key.kindID, int64(key.part), bytes); err != nil {
			return err
		}
		return tx.queryRow(ctx, selectNewest, key.kindID, int64(key.part)).Scan(&created.id, &created.bytes)
	})
	if err != nil {
		return nil, fmt.Errorf("store the dictionary of kind %d: %w", key.kindID, err)
	}
	return created, nil
}

// decompress undoes what a row's column was compressed with.
func (d *dictionaries) decompress(ctx context.Context, s *Store, dst, column []byte) ([]byte, error) {
	if len(column) == 0 {
		return dst, nil
	}
	id, frame, err := parseColumn(column)
	if err != nil {
		return nil, err
	}
	if id < 0 {
		return append(dst, frame...), nil
	}
	found, err := d.get(ctx, s, id)
	if err != nil {
		return nil, err
	}
	return found.decompress(dst, frame)
}

func (d *dictionaries) get(ctx context.Context, s *Store, id int64) (*dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.byID[id]; found != nil {
		return found, nil
	}
	found := &dictionary{id: id}
	if id != 0 {
		err := s.queryOne(ctx, scanInto(&found.bytes), `SELECT bytes FROM dictionaries WHERE id = ?`, id)
		if err != nil {
			return nil, fmt.Errorf("read dictionary %d: %w", id, err)
		}
	}
	return d.cacheLocked(s, found), nil
}

// compressObjects compresses the heads and bodies of a batch's changed objects.
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
		heads[at] = sampleText{rows[i].application, appendHead(nil, objects[i])}
		bodies[at] = sampleText{rows[i].application, fold(objects[i])}
	}
	return errors.Join(
		s.compressPart(ctx, dictionaryKey{kindID, partHead}, heads, func(at int, b []byte) { rows[members[at]].head = b }),
		s.compressPart(ctx, dictionaryKey{kindID, partBody}, bodies, func(at int, b []byte) { rows[members[at]].body = b }))
}

func (s *Store) compressPart(ctx context.Context, key dictionaryKey, texts []sampleText, emit func(int, []byte)) error {
	d, err := s.dicts.forKind(ctx, s, key)
	if err == nil && d.id == 0 {
		d, err = s.dicts.train(ctx, s, key, texts)
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // what follows takes a while, and nobody waits for it
	}
	return d.compress(len(texts), func(i int) []byte { return texts[i].text }, emit)
}
