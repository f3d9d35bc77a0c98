package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/etag"
	"github.com/vedette-io/vedette/server/upstream/merging"
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
func (m *merge) joinDocuments(local localPart, theirs part) (send func() error, err error) {
	if local.isMissing() && theirs.document == nil {
		return func() error { local.sendMissing(); return nil }, nil
	}
	later, err := m.accounts.exact(m.ctx)
	if err != nil {
		return nil, err
	}
	d := &merging.Merge{Ours: m.ours, FiltersLocal: m.ours.mayExceed(later)}
	if !local.isMissing() {
		if d.Local, err = readDocument(m.ctx, local.kept.Reader(), m.grant); err != nil {
			return nil, err
		}
	}
	if theirs.document != nil {
		if d.Theirs, err = readDocument(m.ctx, theirs.document, m.grant); err != nil {
			return nil, err
		}
	}
	if d.Theirs == nil && !d.FiltersLocal {
		return func() error { etag.Write(m.w, m.r, d.Local, local.kept.Sum()); return nil }, nil
	}
	if err := d.Do(m.found.merge); err != nil {
		return nil, err
	}
	return func() error {
		switch {
		case !d.IsNothing:
			etag.Write(m.w, m.r, d.Out, xxhash.Sum64(d.Out))
		case local.isMissing():
			local.sendMissing()
		default:
			return vedette.Errorf(vedette.NotFound, "Application does not exist (name: %s)", m.found.params[appParam])
		}
		return nil
	}, nil
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
