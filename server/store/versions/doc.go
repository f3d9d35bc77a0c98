// Package versions tells caches what may have changed in the database, by counters and by the changed objects and accounts. It
// is in memory only, because only one process writes a database.
package versions
