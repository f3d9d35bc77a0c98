// Package backup copies a SQLite database that a server may be using, and replaces it by such a copy. Other databases have tools of
// their own.
package backup
