package discover

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/vedette-io/vedette"
)

// sharing is a source without the addresses of strangers: Services with the prefix may lead to an existing Clouddriver, or to servers of
// another installation. Only who has a row in the table of servers shares the database.
type sharing struct {
	Source
	table func() []Server // nil while it is not known
	log   *slog.Logger
	announcer
}

func newSharing(inner Source, table func() []Server, log *slog.Logger) *sharing {
	return &sharing{Source: inner, table: table, log: log}
}

// Servers implements Source.
func (s *sharing) Servers() []Server {
	listed, rows := s.Source.Servers(), s.table()
	if listed == nil || rows == nil {
		return nil
	}
	ours, _ := sift(listed, rows)
	return ours
}

// Changed implements Source.
func (s *sharing) Changed() <-chan struct{} { return s.channel() }

// Run implements Source.
func (s *sharing) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx)
	}()
	defer func() { cancel(); <-watched }()
	return s.Source.Run(ctx)
}

// watch announces changes, and names strangers in the log, until ctx ends.
func (s *sharing) watch(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var known strangers
	for last := s.Servers(); ; {
		changed := s.Source.Changed()
		if listed, rows := s.Source.Servers(), s.table(); listed != nil && rows != nil {
			ours, others := sift(listed, rows)
			s.report(known.step(ours, others, time.Now()))
		}
		servers := s.Servers()
		if (servers == nil) != (last == nil) || !isSame(servers, last) {
			s.announce()
		}
		last = servers
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-changed:
		}
	}
}

// report logs what has become known of strangers.
func (s *sharing) report(named, joined []Server) {
	for _, o := range named {
		s.log.Warn("a Service with the prefix of the servers' Services leads to something that shares no database with this server, for example an existing "+
			"Clouddriver or a server of another installation: it is left out, and looked at again later", "id", o.ID, "url", o.BaseURL, "ready", o.Ready)
	}
	for _, o := range joined {
		s.log.Info("what was left out of the servers shares the database now", "id", o.ID, "url", o.BaseURL)
	}
}

// sift separates listed addresses into those of servers with a row, in the order of their IDs, and those of strangers. An address
// belongs to the row with its ID. A server whose ID is not the name of its pod is found by its address and port, and shown with the ID
// of its row.
func sift(listed, rows []Server) (ours, others []Server) {
	ours = []Server{}
	unseen, byAddress := map[vedette.ServerID]bool{}, map[netip.AddrPort]vedette.ServerID{}
	for _, row := range rows {
		unseen[row.ID] = true
		if at := restAddress(row); at.IsValid() && isUsable(at.Addr()) {
			byAddress[at] = row.ID
		}
	}
	var unnamed []Server
	for _, l := range listed {
		if unseen[l.ID] {
			ours = append(ours, l)
			delete(unseen, l.ID)
		} else {
			unnamed = append(unnamed, l)
		}
	}
	for _, l := range unnamed {
		if id, ok := byAddress[addressAndPort(l)]; ok && unseen[id] {
			delete(unseen, id)
			l.ID = id
			ours = append(ours, l)
		} else {
			others = append(others, l)
		}
	}
	slices.SortStableFunc(ours, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	return ours, others
}

// restAddress returns the address and the port of a row's REST API; not valid if the row has a name instead.
func restAddress(row Server) netip.AddrPort {
	u, err := url.Parse(row.BaseURL)
	if err != nil {
		return netip.AddrPort{}
	}
	at, err := netip.ParseAddrPort(u.Host)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// addressAndPort returns those of a listed server, whose URL may have a name.
func addressAndPort(l Server) netip.AddrPort {
	u, err := url.Parse(l.BaseURL)
	if err != nil {
		return netip.AddrPort{}
	}
	port, err := netip.ParseAddrPort("0.0.0.0:" + u.Port())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(l.Address.Unmap(), port.Port())
}

// strangerPatience is how long an address may have no row before it is named: a server that starts is listed before it has one,
// and one that has ended is listed for a while.
const strangerPatience = 30 * time.Second

// strangers remembers who has been named. The zero value knows nobody.
type strangers struct{ since map[stranger]*sighting }

// stranger is an address that was listed.
type stranger struct {
	id  vedette.ServerID
	url string
}

type sighting struct {
	first   time.Time // since when it has been listed without a row
	isNamed bool
}

// step returns the strangers that are to be named now, and those that were named and have a row now. Those that are not listed any more are
// forgotten.
func (s *strangers) step(ours, others []Server, now time.Time) (named, joined []Server) {
	next := map[stranger]*sighting{}
	for _, o := range others {
		key := stranger{o.ID, o.BaseURL}
		seen := s.since[key]
		if seen == nil {
			seen = &sighting{first: now}
		}
		if !seen.isNamed && now.Sub(seen.first) >= strangerPatience {
			seen.isNamed = true
			named = append(named, o)
		}
		next[key] = seen
	}
	gone := map[string]bool{} // URLs of those that were named
	for key, seen := range s.since {
		gone[key.url] = gone[key.url] || seen.isNamed && next[key] == nil
	}
	for _, o := range ours {
		if gone[o.BaseURL] {
			joined = append(joined, o)
		}
	}
	s.since = next
	return named, joined
}
