// Package convergence tests the first guarantee over real processes: whatever
// fails, and in whatever order, once it is healed the store holds what the
// clusters hold, with no action by anyone.
//
// A world is a database, a server, agents and control planes, each a process of
// its own, with a proxy on every way between two of them. A seed decides what
// the world is made of, what changes in its clusters and what fails when. Then
// all is healed, and a fresh list of every kind is compared with the rows of
// the database, which are read past the product's own code.
//
//	go test ./test/convergence -run Convergence -seed 17 -db postgres -v
//
// runs one seed again and prints its schedule and the differences that were
// left. Seeds decide what is done and when; how processes take it is up to the
// machine, so a seed that failed may pass the next time.
package convergence
