package discover

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/test/logbuffer"
)

// listedAt is an address of a Service, given as "id 10.0.0.1:7002".
func listedAt(text string) Server {
	id, at, _ := strings.Cut(text, " ")
	address := netip.MustParseAddrPort(at)
	return Server{ID: vedette.ServerID(id), BaseURL: "http://" + at, Address: address.Addr(), Ready: true}
}

func listedAll(texts ...string) []Server {
	servers := []Server{}
	for _, text := range texts {
		servers = append(servers, listedAt(text))
	}
	return servers
}

// TestOnlyRowsAreServers says which addresses of Services belong to a row.
func TestOnlyRowsAreServers(t *testing.T) {
	row := func(id, url string) Server { return Server{ID: vedette.ServerID(id), BaseURL: url} }
	withDNS := listedAt("pod 10.0.0.1:7002")
	withDNS.BaseURL = "http://10-0-0-1.ns.pod.cluster.local:7002"
	for name, tt := range map[string]struct {
		listed, rows []Server
		ours, others string
	}{
		"the name of the pod is the ID": {listedAll("a 10.0.0.1:7002"), []Server{row("a", "http://10.9.9.9:80")}, "a", ""},
		"no row":                        {listedAll("a 10.0.0.1:7002"), []Server{}, "", "a"},
		"IDs differ in case":            {listedAll("A 10.0.0.1:7002"), []Server{row("a", "")}, "", "A"},
		"another ID, the same address":  {listedAll("pod 10.0.0.1:7002"), []Server{row("configured", "http://10.0.0.1:7002")}, "configured", ""},
		"the DNS name of a pod":         {[]Server{withDNS}, []Server{row("configured", "http://10.0.0.1:7002")}, "configured", ""},
		"another port":                  {listedAll("pod 10.0.0.1:7003"), []Server{row("configured", "http://10.0.0.1:7002")}, "", "pod"},
		"IPv4 in IPv6":                  {listedAll("pod [::ffff:10.0.0.1]:7002"), []Server{row("configured", "http://10.0.0.1:7002")}, "configured", ""},
		"a loopback address is everyone's": {listedAll("pod 127.0.0.1:7002"), []Server{row("configured", "http://127.0.0.1:7002")}, "",
			"pod"},
		"a row is one server": {listedAll("a 10.0.0.1:7002", "b 10.0.0.2:7002"), []Server{row("a", "http://10.0.0.2:7002")}, "a", "b"},
		"two addresses of one row": {listedAll("x 10.0.0.1:7002", "y 10.0.0.1:7002"), []Server{row("configured", "http://10.0.0.1:7002")},
			"configured", "y"},
		"the order is that of IDs": {listedAll("a 10.0.0.1:7002", "b 10.0.0.2:7002"),
			[]Server{row("z", "http://10.0.0.1:7002"), row("b", "")}, "b z", ""},
		"broken URLs": {[]Server{{ID: "a", BaseURL: "://"}}, []Server{row("b", "://"), row("c", "http://name:7002")}, "", "a"},
	} {
		ours, others := sift(tt.listed, tt.rows)
		names := func(servers []Server) string {
			var all []string
			for _, s := range servers {
				all = append(all, string(s.ID))
			}
			return strings.Join(all, " ")
		}
		if got := names(ours); got != tt.ours || ours == nil {
			t.Errorf("%s: got the servers %q, want %q", name, got, tt.ours)
		}
		if got := names(others); got != tt.others {
			t.Errorf("%s: got the strangers %q, want %q", name, got, tt.others)
		}
	}
}

// TestStrangersAreNamedOnce follows what the log says about addresses without a row, and later with one.
func TestStrangersAreNamedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listed, rows atomic.Pointer[[]Server]
		load := func(from *atomic.Pointer[[]Server]) func() []Server {
			return func() []Server {
				if servers := from.Load(); servers != nil {
					return *servers
				}
				return nil
			}
		}
		log := &logbuffer.Buffer{}
		s := newSharing(&polled{list: load(&listed)}, load(&rows), slog.New(slog.NewTextHandler(log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		set := func(to *atomic.Pointer[[]Server], texts ...string) {
			servers := listedAll(texts...)
			to.Store(&servers)
		}
		said := func(after time.Duration) string {
			time.Sleep(after)
			synctest.Wait()
			return fmt.Sprint(len(log.Lines("shares no database")), " named, ", len(log.Lines("shares the database now")), " joined")
		}
		expect := func(step, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: got %s, want %s\n%s", step, got, want, log)
			}
		}
		set(&listed, "a 10.0.0.1:7002", "x 10.0.0.9:7002")
		if expect("before the table is read", said(time.Hour), "0 named, 0 joined"); s.Servers() != nil {
			t.Errorf("got %v before the table is read, want that nothing is known", s.Servers())
		}
		changed := s.Changed()
		set(&rows, "a 10.0.0.1:7002")
		expect("a server that starts gets time", said(strangerPatience-5*time.Second), "0 named, 0 joined")
		select {
		case <-changed:
		default:
			t.Error("nothing was announced when the table was read")
		}
		expect("named", said(10*time.Second), "1 named, 0 joined")
		expect("once", said(24*time.Hour), "1 named, 0 joined")
		changed = s.Changed()
		set(&rows, "a 10.0.0.1:7002", "x 10.0.0.9:7002")
		expect("a later row", said(2*time.Second), "1 named, 1 joined")
		select {
		case <-changed:
		default:
			t.Error("nothing was announced when a stranger got a row")
		}
		expect("joined once", said(time.Hour), "1 named, 1 joined")
		set(&rows, "a 10.0.0.1:7002")
		expect("the row is gone", said(time.Hour), "2 named, 1 joined")
		set(&listed, "a 10.0.0.1:7002")
		expect("it is gone itself", said(time.Hour), "2 named, 1 joined")
		set(&rows, "a 10.0.0.1:7002", "b 10.0.0.2:7002")
		set(&listed, "a 10.0.0.1:7002", "b 10.0.0.2:7002")
		expect("a server that was no stranger", said(time.Hour), "2 named, 1 joined")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
