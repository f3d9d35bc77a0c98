// Package write stores what agents report of objects and feeds, and what operations find out about objects before their feeds
// report it. A commit starts in commit.go.
//
// docs/decisions/0014 says why the tables are as they are, and docs/decisions/0026 how commits and operations take turns.
package write
