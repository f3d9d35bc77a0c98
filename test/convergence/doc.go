// Package convergence tests the first guarantee with real processes: whatever fails, and in
// whatever order, once the faults have ended the store equals the clusters, without action by
// anyone.
//
// A world is a database, a server, agents and control planes, each a process of its own, with a
// proxy on every link between two of them. A seed decides what the world consists of, what changes
// in its clusters, and what fails when. At the end all faults are healed, and a fresh list of every
// kind is compared with the rows of the database, which are read without the product's code.
//
//	go test ./test/convergence -run Convergence -seed 17 -db postgres -v
//
// runs one seed again, and prints its schedule and the remaining differences. Seeds decide what is
// done and when. How processes react depends on the machine, so a seed that failed may pass the
// next time.
package convergence
