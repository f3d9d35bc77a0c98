package lastanswers

import (
	"context"
	"database/sql"
	"time"

	"github.com/vedette-io/vedette/server/store/sqldb"
)

// Answer is the last complete answer of a Clouddriver behind the server to one request.
type Answer struct {
	Name    string    // identifies the Clouddriver and the request
	Fetched time.Time // to the microsecond
	Parts   [][]byte  // opaque
}

// Answers keeps the last answers of a Clouddriver behind the server. Its methods may be called concurrently.
type Answers struct{ db *sqldb.DB }

// New returns the answers of a database.
func New(db *sqldb.DB) *Answers { return &Answers{db} }

// SetUpstreamAnswer stores an answer instead of an earlier one. Parts are at most 1 MiB.
func (a *Answers) SetUpstreamAnswer(ctx context.Context, answer Answer) error {
	err := a.db.Write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		if _, err := tx.Exec(ctx, sqldb.Named("delete an upstream answer", `DELETE FROM upstream_answers WHERE name = ?`), answer.Name); err != nil {
			return err
		}
		for i, part := range answer.Parts {
			_, err := tx.Exec(ctx, sqldb.Named("insert an upstream answer", `INSERT INTO upstream_answers (name, part, fetched, body) VALUES (?, ?, ?, ?)`), answer.Name, i, sqldb.ToMicros(answer.Fetched), part)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return a.db.WrapError("store the last answer of the upstream Clouddriver", err)
}

// ConfirmUpstreamAnswer records that a stored answer was given again.
func (a *Answers) ConfirmUpstreamAnswer(ctx context.Context, name string, fetched time.Time) error {
	_, err := a.db.ExecWrite(ctx, sqldb.Named("confirm an upstream answer", `UPDATE upstream_answers SET fetched = ? WHERE name = ? AND part = 0`), sqldb.ToMicros(fetched), name)
	return a.db.WrapError("store when the upstream Clouddriver last answered", err)
}

// Answer returns a stored answer, or one without parts if there is none.
func (a *Answers) UpstreamAnswer(ctx context.Context, name string) (Answer, error) {
	answer := Answer{Name: name}
	err := a.db.QueryEach(ctx, func(rows *sql.Rows) error {
		var part, fetched int64
		var body []byte
		err := rows.Scan(&part, &fetched, &body)
		if part == 0 {
			answer.Fetched = sqldb.FromMicros(fetched)
		}
		answer.Parts = append(answer.Parts, body)
		return err
	}, sqldb.Named("read an upstream answer", `SELECT part, fetched, body FROM upstream_answers WHERE name = ? ORDER BY part`), name)
	return answer, a.db.WrapError("read the last answer of the upstream Clouddriver", err)
}
