package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/vedette-io/vedette"
)

// part says which column a dictionary is for. The values are stored.
type part int64

const (
	partHead part = 1
	partBody part = 2
)

type dictionaryKey struct {
	kind int64
	part part
}

// dictionaries keep what compresses each kind. The first objects of a kind
// become its dictionary, which all accounts share. A dictionary is never
// deleted nor changed, since rows need it; there are two per kind, or a few more
// where servers met a kind at the same time.
//
// In memory are those that were used, and the samples of kinds that have none yet, both
// within the store's limits: any agent may bring thousands of kinds.
type dictionaries struct {
	mu      sync.Mutex
	current map[dictionaryKey]*dictionary
	byID    map[int64]*dictionary
	samples map[dictionaryKey]*sample
	cached  int // bytes of byID
	sampled int // bytes of samples
}

const (
	dictionarySize = 48 << 10 // bytes: longer ones gain little and take time to load
	sampleCount    = 32
	sampleSize     = 8 << 10 // of one object's beginning
)

// sample gathers a kind's first objects. One from each application at most, as
// long as that fills it: objects of one Deployment teach less than those of ten.
type sample struct {
	texts [][]byte
	spare [][]byte        // of applications that are there already
	bytes int             // of texts
	held  int             // bytes of texts and spare
	seen  map[string]bool // applications
}

func (s *sample) add(application string, text []byte) {
	if len(text) == 0 {
		return
	}
	text = append([]byte(nil), text[:min(len(text), sampleSize)]...)
	if s.seen[application] {
		if len(s.spare) < sampleCount {
			s.spare = append(s.spare, text)
			s.held += len(text)
		}
		return
	}
	if s.bytes < dictionarySize {
		s.seen[application] = true
		s.texts = append(s.texts, text)
		s.bytes += len(text)
		s.held += len(text)
	}
}

// full reports whether there is enough to make a dictionary of.
func (s *sample) full() bool {
	return len(s.texts)+len(s.spare) >= sampleCount || s.bytes >= dictionarySize
}

// dictionary joins the samples. What differs most from the rest stands first:
// zstd spends fewer bits on what is near the end.
func (s *sample) dictionary() []byte {
	var joined []byte
	room := dictionarySize - s.bytes
	for _, text := range s.spare {
		if len(text) <= room {
			joined = append(joined, text...)
			room -= len(text)
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
	err := s.one(ctx, into(&found.id, &found.bytes), `SELECT id, bytes FROM dictionaries WHERE kind_id = ? AND part = ? ORDER BY id DESC LIMIT 1`,
		key.kind, int64(key.part))
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("read the dictionary of kind %d: %w", key.kind, err)
	}
	return d.keepLocked(s, key, found), nil
}

func (d *dictionaries) keepLocked(s *Store, key dictionaryKey, made *dictionary) *dictionary {
	made = d.cacheLocked(s, made)
	d.current[key] = made
	return made
}

// cacheLocked keeps a dictionary in memory. Where that is too much, the others are let
// go: they are read again when they are used.
func (d *dictionaries) cacheLocked(s *Store, made *dictionary) *dictionary {
	if d.samples == nil {
		d.samples = map[dictionaryKey]*sample{}
	}
	if d.byID == nil || d.cached+len(made.bytes) > s.limits.dictionaries {
		d.current, d.byID, d.cached = map[dictionaryKey]*dictionary{}, map[int64]*dictionary{0: {}}, 0
	}
	if found := d.byID[made.id]; found != nil {
		if made.id == 0 {
			return found
		}
		d.cached -= len(found.bytes)
	}
	d.byID[made.id] = made
	d.cached += len(made.bytes)
	return made
}

// gatherLocked adds texts to a kind's sample. Where all samples have too much, others
// are let go, whichever: those kinds begin anew.
func (d *dictionaries) gatherLocked(s *Store, key dictionaryKey, texts []sampleText) *sample {
	gathered := d.samples[key]
	if gathered == nil {
		gathered = &sample{seen: map[string]bool{}}
		d.samples[key] = gathered
	}
	before := gathered.held
	for _, t := range texts {
		gathered.add(t.application, t.text)
	}
	d.sampled += gathered.held - before
	for other, its := range d.samples {
		if d.sampled > s.limits.samples && its != gathered {
			d.dropLocked(other)
		}
	}
	return gathered
}

func (d *dictionaries) dropLocked(key dictionaryKey) {
	d.sampled -= d.samples[key].held
	delete(d.samples, key)
}

// learn makes a kind's dictionary when enough of its objects have come by.
func (d *dictionaries) learn(ctx context.Context, s *Store, key dictionaryKey, texts []sampleText) (*dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.current[key]; found != nil && found.id != 0 {
		return found, nil
	}
	gathered := d.gatherLocked(s, key, texts)
	if !gathered.full() {
		return d.byID[0], nil
	}
	made, err := s.insertDictionary(ctx, key, gathered.dictionary())
	if err != nil {
		return nil, err
	}
	d.dropLocked(key)
	return d.keepLocked(s, key, made), nil
}

type sampleText struct {
	application string
	text        []byte
}

// insertDictionary commits it before any row can need it. Where another server
// was faster, its dictionary serves.
func (s *Store) insertDictionary(ctx context.Context, key dictionaryKey, bytes []byte) (*dictionary, error) {
	made := &dictionary{}
	err := s.write(ctx, func(ctx context.Context, tx *tx) error {
		const find = `SELECT id, bytes FROM dictionaries WHERE kind_id = ? AND part = ? ORDER BY id DESC LIMIT 1`
		err := tx.queryRow(ctx, find, key.kind, int64(key.part)).Scan(&made.id, &made.bytes)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if _, err := tx.exec(ctx, `INSERT INTO dictionaries (kind_id, part, bytes) VALUES (?, ?, ?)`, key.kind, int64(key.part), bytes); err != nil {
			return err
		}
		return tx.queryRow(ctx, find, key.kind, int64(key.part)).Scan(&made.id, &made.bytes)
	})
	if err != nil {
		return nil, fmt.Errorf("store the dictionary of kind %d: %w", key.kind, err)
	}
	return made, nil
}

// expand undoes what a row's column was compressed with.
func (d *dictionaries) expand(ctx context.Context, s *Store, dst, column []byte) ([]byte, error) {
	if len(column) == 0 {
		return dst, nil
	}
	id, frame, err := splitColumn(column)
	if err != nil {
		return nil, err
	}
	if id < 0 {
		return append(dst, frame...), nil
	}
	found, err := d.numbered(ctx, s, id)
	if err != nil {
		return nil, err
	}
	return found.expand(dst, frame)
}

func (d *dictionaries) numbered(ctx context.Context, s *Store, id int64) (*dictionary, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found := d.byID[id]; found != nil {
		return found, nil
	}
	found := &dictionary{id: id}
	if id != 0 {
		err := s.one(ctx, into(&found.bytes), `SELECT bytes FROM dictionaries WHERE id = ?`, id)
		if err != nil {
			return nil, fmt.Errorf("read dictionary %d: %w", id, err)
		}
	}
	return d.cacheLocked(s, found), nil
}

// pack compresses the heads and bodies of a batch's changed objects.
func (s *Store) pack(ctx context.Context, objects []*vedette.Object, rows []row) error {
	byKind := map[int64][]int{}
	for i := range rows {
		byKind[rows[i].kind] = append(byKind[rows[i].kind], i)
	}
	for kind, members := range byKind {
		if err := s.packKind(ctx, kind, members, objects, rows); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) packKind(ctx context.Context, kind int64, members []int, objects []*vedette.Object, rows []row) error {
	heads, bodies := make([]sampleText, len(members)), make([]sampleText, len(members))
	for at, i := range members {
		heads[at] = sampleText{rows[i].application, appendHead(nil, objects[i])}
		bodies[at] = sampleText{rows[i].application, fold(objects[i])}
	}
	return errors.Join(
		s.packPart(ctx, dictionaryKey{kind, partHead}, heads, func(at int, b []byte) { rows[members[at]].head = b }),
		s.packPart(ctx, dictionaryKey{kind, partBody}, bodies, func(at int, b []byte) { rows[members[at]].body = b }))
}

func (s *Store) packPart(ctx context.Context, key dictionaryKey, texts []sampleText, keep func(int, []byte)) error {
	d, err := s.dicts.forKind(ctx, s, key)
	if err == nil && d.id == 0 {
		d, err = s.dicts.learn(ctx, s, key, texts)
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // what follows takes a while, and nobody waits for it
	}
	return d.compress(len(texts), func(i int) []byte { return texts[i].text }, keep)
}
