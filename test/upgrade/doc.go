// Package upgrade compares this version with the one before: it builds the programs of the commit of that release, which the file versions
// names, and reads its files. Tests here compare what users rely on; test/convergence runs programs of both versions together (docs/decisions/0183).
package upgrade
