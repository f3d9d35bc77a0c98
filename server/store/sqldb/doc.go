// Package sqldb opens a database of SQLite, PostgreSQL or MySQL/MariaDB for the parts of the store. It has what they share:
// connections with time limits, transactions that are retried, the row of the lease by which one server at a time writes,
// migrations, the classes of errors, statements with names, and the conditions and texts of which statements consist.
//
// What differs between the databases is a small value, Dialect. What differs only when objects are written, or read, is
// in packages write and read.
package sqldb
