package server

import (
	"errors"
	"fmt"
	"net"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/server/discover"
	"github.com/vedette-io/vedette/server/membership"
	"github.com/vedette-io/vedette/server/peer"
	"github.com/vedette-io/vedette/server/store/sqldb"
)

// PeersConfig lets other servers share the database, and says how they call this one.
type PeersConfig struct {
	// Address is the address to listen on, host:port.
	Address string
	// Advertise is the host, or host:port, at which other servers reach that; empty for the address of this machine.
	Advertise string
	// RESTOperations takes operations and results of other servers over REST, too.
	RESTOperations bool
}

// listenForPeers opens the port for other servers, and fills in what the table of servers says of this one.
func (s *Server) listenForPeers() error {
	if s.cfg.Peers == nil {
		return nil
	}
	listener, err := listen("other servers", s.cfg.Peers.Address)
	if err != nil {
		return err
	}
	identity, err := peer.NewIdentity()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	address, err := advertised(s.cfg.Peers.Advertise, listener.Addr())
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.peerListener, s.identity = listener, identity
	key := identity.Key()
	_, url := discover.AddressURL(s.cfg.RESTTLS != nil, s.rest.Addr())
	s.cfg.Store.Sharing = &sqldb.Sharing{URL: url, PeerAddress: address, PublicKey: key[:], Version: s.cfg.Version}
	return nil
}

// advertised returns the address at which other servers reach a listener.
func advertised(configured string, listener net.Addr) (string, error) {
	_, port, err := net.SplitHostPort(listener.String())
	if err != nil {
		return "", fmt.Errorf("read the address for other servers: %w", err)
	}
	if configured != "" {
		if host, configuredPort, err := net.SplitHostPort(configured); err == nil {
			return net.JoinHostPort(host, configuredPort), nil
		}
		return net.JoinHostPort(configured, port), nil
	}
	address, _ := discover.AddressURL(false, listener)
	return net.JoinHostPort(address.String(), port), nil
}

// peerMembers shows the servers that share the database as package peer wants them.
type peerMembers struct{ members *membership.Membership }

// Peer returns a server.
func (m peerMembers) Peer(id vedette.ServerID) (peer.Peer, bool) {
	s, exists := m.members.Current()[id]
	return peerOf(s), exists
}

// Changed returns a channel that is closed when a server appears or disappears.
func (m peerMembers) Changed() <-chan struct{} { return m.members.Changed() }

// ByKey returns the server that has a key.
func (m peerMembers) ByKey(key [32]byte) (peer.Peer, bool) {
	for _, s := range m.members.Current() {
		if p := peerOf(s); p.Key == key {
			return p, true
		}
	}
	return peer.Peer{}, false
}

func peerOf(s sqldb.SharingServer) peer.Peer {
	p := peer.Peer{ID: s.ID, Process: s.Token, Address: s.PeerAddress}
	if len(s.PublicKey) == len(p.Key) {
		p.Key = [32]byte(s.PublicKey)
	}
	return p
}

// peers are what a server needs to call others, and to answer them.
type peers struct {
	client *peer.Client
	server *peer.Server
	agents *peerAgents
	// forwarding is nil if it is switched off.
	forwarding *peer.Forwarding
}

// newPeers returns what calls other servers, and lets operations reach agents that are connected to them.
func (s *Server) newPeers(v *services) *peers {
	cfg := peer.Config{Identity: s.identity, Self: s.cfg.ID, Members: peerMembers{v.members}, Observer: s.cfg.Metrics}
	p := &peers{client: peer.NewClient(cfg, v.store, v.callersLog), server: peer.NewServer(cfg, v.dispatcher, v.callersLog)}
	p.server.SetCoherence(v.coherence.Publisher, v)
	p.server.SetAssignments(v.assignments)
	p.agents = &peerAgents{self: s.cfg.ID, client: p.client, members: v.members}
	if s.cfg.Peers.RESTOperations {
		p.forwarding = peer.NewForwarding(peer.ForwardingConfig{Config: cfg, Dispatch: v.dispatcher, Rows: v.store, Log: v.callersLog,
			URL: func(id vedette.ServerID) (string, bool) {
				row, exists := v.members.Current()[id]
				return row.URL, exists
			}})
	}
	v.dispatcher.SetRemote(p.client)
	v.dispatcher.SetKnown(v.coherence.Flush)
	v.dispatcher.SetLease(v.store.CheckLease)
	return p
}
