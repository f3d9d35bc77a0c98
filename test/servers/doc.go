// Package servers runs several servers on one database, with real agents, a real control plane and real databases.
package servers
