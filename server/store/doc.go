// Package store keeps what agents report in SQLite, PostgreSQL or MySQL/MariaDB, and is the only
// package that uses SQL. The suite in storetest holds all databases to the same behavior. Its
// subpackages need no database: codec encodes the columns of objects, overlay decides which
// changes of a feed are stale, and admission decides who may write and when. A commit starts in
// commit.go.
package store
