package store

import (
	"context"
	"database/sql"
	"time"
)

// UpstreamAnswer is the last complete answer of a Clouddriver behind the server to one request.
type UpstreamAnswer struct {
	Name    string    // identifies the Clouddriver and the request
	Fetched time.Time // to the microsecond
	Parts   [][]byte  // opaque
}

// SetUpstreamAnswer stores an answer instead of an earlier one. Parts are at most 1 MiB.
func (s *Store) SetUpstreamAnswer(ctx context.Context, a UpstreamAnswer) error {
	err := s.write(ctx, func(ctx context.Context, tx *transaction) error {
		if _, err := tx.exec(ctx, `DELETE FROM upstream_answers WHERE name = ?`, a.Name); err != nil {
			return err
		}
		for i, part := range a.Parts {
			_, err := tx.exec(ctx, `INSERT INTO upstream_answers (name, part, fetched, body) VALUES (?, ?, ?, ?)`, a.Name, i, toMicros(a.Fetched), part)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return s.wrapError("store the last answer of the upstream Clouddriver", err)
}

// ConfirmUpstreamAnswer records that a stored answer was given again.
func (s *Store) ConfirmUpstreamAnswer(ctx context.Context, name string, fetched time.Time) error {
	_, err := s.execWrite(ctx, `UPDATE upstream_answers SET fetched = ? WHERE name = ? AND part = 0`, toMicros(fetched), name)
	return s.wrapError("store when the upstream Clouddriver last answered", err)
}

// UpstreamAnswer returns a stored answer, or one without parts if there is none.
func (s *Store) UpstreamAnswer(ctx context.Context, name string) (UpstreamAnswer, error) {
	a := UpstreamAnswer{Name: name}
	err := s.queryEach(ctx, func(rows *sql.Rows) error {
		var part, fetched int64
		var body []byte
		err := rows.Scan(&part, &fetched, &body)
		if part == 0 {
			a.Fetched = fromMicros(fetched)
		}
		a.Parts = append(a.Parts, body)
		return err
	}, `SELECT part, fetched, body FROM upstream_answers WHERE name = ? ORDER BY part`, name)
	return a, s.wrapError("read the last answer of the upstream Clouddriver", err)
}
