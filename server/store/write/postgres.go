package write

import (
	"context"
	"fmt"

	"github.com/vedette-io/vedette/server/store/catalog"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// keyArrays returns one array per column of keys.
func keyArrays(keys []catalog.Key) (kinds []int64, namespaces, names []string) {
	kinds = make([]int64, len(keys))
	namespaces = make([]string, len(keys))
	names = make([]string, len(keys))
	for i, k := range keys {
		kinds[i] = k.KindID
		namespaces[i] = k.Namespace
		names[i] = k.Name
	}
	return kinds, namespaces, names
}

func postgresLookup(ctx context.Context, db *sqldb.DB, accountID int64, keys []catalog.Key, found func(storedRow)) error {
	if len(keys) == 0 {
		return nil
	}
	kinds, namespaces, names := keyArrays(keys)
	return db.QueryEach(ctx, scanStored(found), sqldb.Named("look up objects", `SELECT `+lookupColumns+`
		FROM unnest($2::integer[], $3::text[], $4::text[]) AS k (kind_id, namespace, name)
		CROSS JOIN LATERAL (SELECT * FROM objects o
			WHERE o.account_id = $1 AND o.kind_id = k.kind_id AND o.namespace = k.namespace AND o.name = k.name LIMIT 1) o
		LEFT JOIN labelsets l ON l.id = o.labelset`), accountID, kinds, namespaces, names)
}

func postgresRemove(ctx context.Context, tx *sqldb.Tx, accountID int64, keys []catalog.Key) error {
	if len(keys) == 0 {
		return nil
	}
	kinds, namespaces, names := keyArrays(keys)
	_, err := tx.ExecContext(ctx, `DELETE FROM objects o USING unnest($2::integer[], $3::text[], $4::text[]) AS k (kind_id, namespace, name)
		WHERE o.account_id = $1 AND o.kind_id = k.kind_id AND o.namespace = k.namespace AND o.name = k.name`, accountID, kinds, namespaces, names)
	if err != nil {
		return fmt.Errorf("delete objects: %w", err)
	}
	return nil
}

const postgresUpsertStatement = `INSERT INTO objects (account_id, stored, kind_id, namespace, name, labelset, uid, version, application, cluster, owner,
		attributes, head, body)
	SELECT $1, $2, * FROM unnest($3::integer[], $4::text[], $5::text[], $6::bigint[], $7::bytea[], $8::text[], $9::text[], $10::text[],
		$11::bytea[], $12::bytea[], $13::bytea[], $14::bytea[])
	ON CONFLICT (account_id, kind_id, namespace, name) DO UPDATE SET labelset = excluded.labelset, stored = excluded.stored,
		uid = excluded.uid, version = excluded.version, application = excluded.application, cluster = excluded.cluster, owner = excluded.owner,
		attributes = excluded.attributes, head = excluded.head, body = excluded.body`

func postgresUpsert(ctx context.Context, tx *sqldb.Tx, accountID int64, rows []objectRow) error {
	if len(rows) == 0 {
		return nil
	}
	n := len(rows)
	kinds := make([]int64, n)
	namespaces := make([]string, n)
	names := make([]string, n)
	sets := make([]int64, n)
	versions := make([]string, n)
	applications := make([]string, n)
	clusters := make([]string, n)
	uids := make([][]byte, n)
	owners := make([][]byte, n)
	attributes := make([][]byte, n)
	heads, bodies := make([][]byte, n), make([][]byte, n)
	for i := range rows {
		r := &rows[i]
		kinds[i] = r.KindID
		namespaces[i] = r.Namespace
		names[i] = r.Name
		sets[i] = r.labelset
		uids[i] = r.uid
		versions[i] = r.version
		applications[i] = r.Application
		clusters[i] = r.Cluster
		owners[i] = r.owner
		attributes[i] = r.attributes
		heads[i] = r.head
		bodies[i] = r.body
	}
	if _, err := tx.ExecContext(ctx, postgresUpsertStatement, accountID, sqldb.ToMicros(tx.Now), kinds, namespaces, names, sets, uids,
		versions,
		applications, clusters, owners, attributes, heads, bodies); err != nil {
		return fmt.Errorf("upsert objects: %w", err)
	}
	return nil
}
