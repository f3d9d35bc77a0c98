// Package store is the only one that speaks SQL. It keeps what agents report,
// in SQLite, PostgreSQL or MySQL/MariaDB, each by its own means, behind one set
// of methods that storetest holds to one behaviour.
package store
