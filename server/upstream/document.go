package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/internal/exactjson"
	"github.com/vedette-io/vedette/server/upstream/spool"
)

// copies is how often the bytes of a document are in memory while it is merged: as received in a buffer that grows by
// doubling, and in the merged answer. elementCost is what each element and each member becomes beside its bytes: an entry of a map or
// of a list, and what the check for members that are there twice keeps.
const (
	copies      = 3
	elementCost = 100
)

// joinDocuments returns the function that sends both parts of an answer that is merged as a whole.
func (m *merge) joinDocuments(own ownPart, theirs part) (send func() error, err error) {
	if own.isMissing() && theirs.document == nil {
		return func() error { own.sendMissing(); return nil }, nil
	}
	later, err := m.accounts.exact(m.ctx)
	if err != nil {
		return nil, err
	}
	d := &merger{ours: m.ours, filtersOwn: m.ours.mayExceed(later)}
	if !own.isMissing() {
		if d.own, err = readDocument(m.ctx, own.kept.Reader(), m.grant); err != nil {
			return nil, err
		}
	}
	if theirs.document != nil {
		if d.theirs, err = readDocument(m.ctx, theirs.document, m.grant); err != nil {
			return nil, err
		}
	}
	if d.theirs == nil && !d.filtersOwn {
		return func() error { etag.Write(m.w, m.r, d.own, own.kept.Sum()); return nil }, nil
	}
	if err := d.merge(m.found.merge); err != nil {
		return nil, err
	}
	return func() error {
		switch {
		case !d.isNothing:
			etag.Write(m.w, m.r, d.out, xxhash.Sum64(d.out))
		case own.isMissing():
			own.sendMissing()
		default:
			return vedette.Errorf(vedette.NotFound, "Application does not exist (name: %s)", m.found.params[appParam])
		}
		return nil
	}, nil
}

// merge merges both documents by a function.
func (m *merger) merge(by mergeFunc) error {
	if m.theirs != nil {
		// Readers take the first or the last of two members with one name: one of them could be an account of agents.
		if err := exactjson.Check(m.theirs); err != nil {
			return fmt.Errorf("check the answer: %w", err)
		}
	}
	m.out = make([]byte, 0, len(m.own)+len(m.theirs)+len("[]\n"))
	if err := by(m); err != nil || m.isNothing {
		return err
	}
	m.out = append(m.out, '\n')
	return nil
}

// readDocument reads a document, and pays for what merging it takes.
func readDocument(ctx context.Context, from io.Reader, grant *spool.Grant) ([]byte, error) {
	var b bytes.Buffer
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		if n > 0 {
			parts := bytes.Count(chunk[:n], []byte{','}) + bytes.Count(chunk[:n], []byte{':'})
			if err := grant.Grow(ctx, int64(n)*copies+int64(parts)*elementCost); err != nil {
				return nil, err
			}
			b.Write(chunk[:n])
		}
		switch {
		case errors.Is(err, io.EOF):
			return append([]byte{}, b.Bytes()...), nil
		case err != nil:
			return nil, &bodyError{err}
		}
	}
}
