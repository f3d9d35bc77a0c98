// Package scale measures several servers that share a database: vedette-server as processes, a real PostgreSQL, and agents in processes of
// their own, whose clusters package fleet simulates. `make fleet-servers` prints a table; `go test` runs the same with few agents, and asserts what depends on no clock.
package scale
