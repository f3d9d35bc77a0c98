package write

import (
	"context"
	"errors"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/attributes"
	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/codec"
)

// compressObjects sets the compressed columns of rows, which belong to the objects of the same
// index.
func (w *Writer) compressObjects(ctx context.Context, objects []*vedette.Object, rows []objectRow) error {
	byKind := map[int64][]int{}
	for i := range rows {
		byKind[rows[i].KindID] = append(byKind[rows[i].KindID], i)
	}
	for kindID, members := range byKind {
		if err := w.compressKind(ctx, kindID, members, objects, rows); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) compressKind(ctx context.Context, kindID int64, members []int, objects []*vedette.Object, rows []objectRow) error {
	heads, bodies := make([]catalog.SampleText, len(members)), make([]catalog.SampleText, len(members))
	for at, i := range members {
		stored := *objects[i]
		stored.Summary = attributes.TrimSummary(stored.Summary)
		if len(rows[i].owner) > 0 { // the column has it
			stored.Owner.UID = ""
		}
		heads[at] = catalog.SampleText{Application: rows[i].Application, Text: codec.EncodeHead(&stored)}
		bodies[at] = catalog.SampleText{Application: rows[i].Application, Text: codec.FoldBody(objects[i])}
	}
	return errors.Join(
		w.compressPart(ctx, catalog.DictionaryKey{KindID: kindID, Part: catalog.PartHead}, heads, func(at int,
			b []byte) {
			rows[members[at]].head = b
		}),
		w.compressPart(ctx, catalog.DictionaryKey{KindID: kindID, Part: catalog.PartBody}, bodies, func(at int,
			b []byte) {
			rows[members[at]].body = b
		}))
}

func (w *Writer) compressPart(ctx context.Context, key catalog.DictionaryKey, texts []catalog.SampleText, emit func(int, []byte)) error {
	d, err := w.dicts.ForKind(ctx, key)
	if err == nil && d.ID() == 0 {
		d, err = w.dicts.Train(ctx, key, texts)
	}
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // compressing takes a while, and the caller has given up
	}
	return d.Compress(len(texts), func(i int) []byte { return texts[i].Text }, emit)
}
