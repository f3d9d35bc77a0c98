// Package replication tests the store on databases of several machines, with real processes: MariaDB Galera, and PostgreSQL
// with Patroni behind HAProxy and PgBouncer. The flag -all runs everything; without it, what takes long is left out.
package replication
