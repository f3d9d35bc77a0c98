// Package peer lets the servers of one installation call each other: a server passes operations to agents that are connected to another
// one, and waits for operations that another one has accepted.
//
// Servers talk gRPC over mutual TLS 1.3. Each process makes a key when it starts, and the table of servers has the public one. A peer is
// whoever proves the key of a row: certificates only contain the keys, names and addresses prove nothing, and a connection ends when
// its row has gone or belongs to another process. docs/decisions/0185-many-servers.md has the reasons.
//
// The server that has accepted an operation decides everything about it. A relayed operation is never passed on again, so operations do
// not go in circles.
package peer

import (
	"time"

	"github.com/vedette-io/vedette"
)

// Peer is a server that runs: a row of the table of servers.
type Peer struct {
	ID      vedette.ServerID
	Process string   // the token of its process
	Address string   // host and port for other servers
	Key     [32]byte // SHA-256 of its public key, as KeyOf returns it
}

// members are the servers that run, this one included. Its methods must not block.
type members interface {
	Peer(id vedette.ServerID) (Peer, bool)
	ByKey(key [32]byte) (Peer, bool)
	// Changed returns a channel that is closed when a server appears or disappears.
	Changed() <-chan struct{}
}

// Observer counts what is passed to other servers. Its methods must not block.
type Observer interface {
	// Forwarded is called when an operation that was sent to another server has come back: done, failed, lost, unsent (the agent has not
	// received it), gone (the agent or the connection is), or canceled (this server wants no outcome any more).
	Forwarded(result string, took time.Duration)
}

// Config has what Server and Client need. Zero values mean the defaults.
type Config struct {
	// Identity is this process'.
	Identity *Identity
	// Self is the id of this server.
	Self vedette.ServerID
	// Members are the servers that run.
	Members members
	// CheckInterval is how often it is looked whether the peers of open connections still run; 1 s. New calls and arriving operations are
	// checked at once.
	CheckInterval time.Duration
	// ConnectTimeout is how long a connection, or the answer to the first message of a call, may take; 3 s.
	ConnectTimeout time.Duration
	// AnswerBytes is the memory for large outcomes on their way from other servers; 128 MiB. An outcome takes twice its size.
	AnswerBytes int64
	// Observer counts; nil counts nothing.
	Observer Observer
}

func (c *Config) defaults() {
	if c.CheckInterval == 0 {
		c.CheckInterval = time.Second
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 3 * time.Second
	}
	if c.AnswerBytes == 0 {
		c.AnswerBytes = 128 << 20
	}
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
}

type noObserver struct{}

func (noObserver) Forwarded(string, time.Duration) {}
