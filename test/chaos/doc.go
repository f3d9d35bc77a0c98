// Package chaos runs several servers that share a database, with agents, control planes and databases as real processes, and lets everything
// fail at random while clients at all servers read and write. What the clients were told is recorded, and checked by package history.
//
//	make chaos TIME=20m SEED=17 DB=postgres
//
// A run is a sequence of rounds. The seed of a round decides what fails and what clients do; the next round has the next seed. Each round
// has objects of its own, ends all faults, and must converge within a minute. How processes react depends on the machine, so a seed
// that failed may pass the next time.
package chaos
