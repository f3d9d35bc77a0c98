package assignment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// spreader makes agents connect to servers that have fewer. Agents keep their connection as long as their server runs, so a server that
// joins would get none, and after a rolling restart the last one would have the fewest. One agent at a time is asked to connect again. It
// keeps its connection until it has the next (docs/decisions/0189), and its accounts come with it.
//
// What another server says of its agents is contradicted by an agent that was asked to leave, and is not there afterwards. Then nobody is
// asked for a while.
type spreader struct {
	servers     []vedette.ServerID // the others that are there
	stableSince time.Time          // since when these are the same, and take agents
	isActive    bool               // agents are asked until the servers have about as many
	isAnnounced bool               // the log says so
	asked       *askedAgent        // nil if nobody is awaited
	restUntil   time.Time
	stay        map[vedette.AgentID]time.Time // until when agents that have come back are not asked again
}

// askedAgent is an agent that was asked to connect to another server.
type askedAgent struct {
	id     vedette.AgentID
	member MemberID
	server vedette.ServerID // which has the fewest agents
	at     time.Time
}

const (
	// minSpread is by how many agents two servers differ at least, because one agent more cannot be avoided.
	minSpread = 2
	// askTimeout is after what time an agent that was asked to leave must be at another server.
	askTimeout = 30 * time.Second
	// stayAfterReturn is for how long an agent is not asked again that has come back, for example because a load balancer chose this server
	// again.
	stayAfterReturn = 10 * time.Minute
	// restAfterFailure is for how long no agent is asked after one that is nowhere, or could not leave.
	restAfterFailure = 10 * time.Minute
	// maxMisses is how many agents in a row, for each other server, may go to others than to the one with the fewest, or come back: they or
	// their load balancer choose. After that it counts as one that agents do not reach, for ignoreUnreached.
	maxMisses       = 10
	ignoreUnreached = time.Hour
)

// spread asks an agent to connect to another server if that one has fewer. It is called each second.
func (f *Fleet) spread() {
	s, cfg := &f.spreader, f.balancer.cfg
	if !f.balancer.enabled || cfg.IsWithinServer || !f.isShared {
		return
	}
	f.noteServers()
	if !f.hasEndedAsking() || f.isDraining || len(s.servers) == 0 || f.now.Sub(s.stableSince) < cfg.Stable || f.now.Before(s.restUntil) {
		return
	}
	server := f.serverWithFewest()
	if server == "" {
		return
	}
	own, fewest := len(f.members), len(f.peers[server].agents)
	percent := startPercent
	if s.isActive {
		percent = stopPercent
	}
	s.isActive = own-fewest >= minSpread && (own-fewest)*100 > (own+fewest)*percent
	s.isAnnounced = s.isAnnounced && s.isActive
	if !s.isActive || f.isMoreElsewhere(own) {
		return
	}
	m := f.nextToLeave()
	if m == nil {
		return
	}
	if !s.isAnnounced {
		s.isAnnounced = true
		f.log.Info("asking agents to connect to other servers, which have fewer", "agents", own, "server", server, "its_agents", fewest)
	}
	s.asked = &askedAgent{m.ID, m.id, server, f.now}
	f.emit(AskToLeave{Member: m.id, Reason: fmt.Sprintf("this server has %d agents, and %s has %d", own, server, fewest)})
}

// noteServers notes since when the other servers are the same. One that drains, or is not heard, may be one that is restarted, and the next
// one may follow: nobody is asked to leave twice for that.
func (f *Fleet) noteServers() {
	s := &f.spreader
	servers := slices.Sorted(maps.Keys(f.peers))
	isStable := slices.Equal(servers, s.servers)
	for _, p := range f.peers {
		isStable = isStable && !p.isDraining && f.now.Sub(p.heardAt) < PeerTimeout && !p.joinedAt.After(s.stableSince)
	}
	if !isStable { // also after a pause of this process, in which an agent may have arrived
		s.servers, s.stableSince = servers, f.now
		s.isActive = false
		s.asked = nil
	}
}

// serverWithFewest returns the server with the fewest agents of the others that agents reach; empty if there is none.
func (f *Fleet) serverWithFewest() (server vedette.ServerID) {
	for _, id := range f.spreader.servers {
		p := f.peers[id]
		if !f.now.Before(p.ignoredUntil) && (server == "" || len(p.agents) < len(f.peers[server].agents)) {
			server = id
		}
	}
	return server
}

// isMoreElsewhere reports whether another server has more agents. That one asks.
func (f *Fleet) isMoreElsewhere(own int) bool {
	for _, p := range f.peers {
		if len(p.agents) > own {
			return true
		}
	}
	return false
}

// hasEndedAsking reports whether the agent that was asked last is at another server, or has come back, or is not awaited any more.
func (f *Fleet) hasEndedAsking() bool {
	s := &f.spreader
	if s.asked == nil {
		return true
	}
	isHere, isBack := false, false
	for _, m := range f.members {
		isHere = isHere || m.id == s.asked.member
		isBack = isBack || m.ID == s.asked.id && m.id != s.asked.member
	}
	isLate := f.now.Sub(s.asked.at) >= askTimeout
	switch {
	case !isHere && f.isAtPeer(s.asked.id):
		f.noteArrival()
	case !isHere && isBack:
		f.noteArrival()
		s.stay[s.asked.id] = f.now.Add(stayAfterReturn)
	case isLate:
		s.stay[s.asked.id] = f.now.Add(stayAfterReturn)
		s.restUntil = f.now.Add(restAfterFailure)
		s.isActive = false
		f.log.Warn("an agent that was asked to connect to another server is not there: look whether agents reach all servers",
			"agent", s.asked.id, "stays", isHere)
	default:
		return false
	}
	s.asked = nil
	return true
}

// noteArrival notes whether the agent that was asked has gone to the server with the fewest agents. One that none of them reaches
// must not make agents connect again for ever.
func (f *Fleet) noteArrival() {
	s := &f.spreader
	p := f.peers[s.asked.server]
	if p == nil || p.has(s.asked.id) {
		if p != nil {
			p.misses = 0
		}
		return
	}
	p.misses++
	if p.misses < maxMisses*len(s.servers) {
		return
	}
	p.misses = 0
	p.ignoredUntil = f.now.Add(ignoreUnreached)
	f.log.Warn("agents that are asked to connect to other servers never go to the one with the fewest: look whether they reach it",
		"server", s.asked.server, "agents", len(p.agents), "asked_again_in", ignoreUnreached)
}

func (f *Fleet) isAtPeer(id vedette.AgentID) bool {
	for _, p := range f.peers {
		if p.has(id) {
			return true
		}
	}
	return false
}

func (p *peer) has(id vedette.AgentID) bool {
	for _, r := range p.agents {
		if r.ID == id {
			return true
		}
	}
	return false
}

// nextToLeave returns the agent whose move changes least: accounts that no other agent has stay with theirs, and few objects are few
// accounts. It returns nil if there is none.
func (f *Fleet) nextToLeave() *member {
	maps.DeleteFunc(f.spreader.stay, func(_ vedette.AgentID, until time.Time) bool { return !f.now.Before(until) })
	var best *member
	for _, m := range f.members {
		_, stays := f.spreader.stay[m.ID]
		if stays || m.liveness.isSilent() || f.settledFor(m) < f.balancer.cfg.Tenure {
			continue
		}
		if best == nil || m.leavesBefore(best) {
			best = m
		}
	}
	return best
}

func (m *member) leavesBefore(other *member) bool {
	if m.liveness.isShared != other.liveness.isShared {
		return other.liveness.isShared
	}
	return cmp.Or(cmp.Compare(m.load, other.load), cmp.Compare(m.id, other.id)) < 0
}
