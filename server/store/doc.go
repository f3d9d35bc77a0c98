// Package store keeps what agents report in SQLite, PostgreSQL or MySQL/MariaDB. Open opens a database, and composes the parts, which
// are the only packages that use SQL. The suite below storetest holds all databases to the same behavior.
//
// All parts use sqldb. On top of it are catalog, registry (accounts), history (operations), tasks, lastanswers, and then
// write and read, which do not know each other: what one must know of the other is in catalog, and in versions and namefilter.
// These two, and commit, codec, admission, lease and writethrough, need no database, so that their rules are tested without rows; a test
// in the root forbids that they import database/sql. docs/decisions/0165 says why the parts are cut like this.
package store
