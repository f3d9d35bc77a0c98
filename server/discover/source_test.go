package discover_test

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette/server/discover"
)

// TestSourcesInMemory checks the lists of sources that need no cluster, and that changes are announced.
func TestSourcesInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		self := discover.Server{ID: "self", BaseURL: "http://10.0.0.1:7002", LastUpdated: time.Now()}
		var table atomic.Pointer[[]discover.Server]
		local := discover.Local{Self: func() discover.Server { return self }}
		alone := discover.New(discover.Config{}, local, nil)
		noTable := discover.New(discover.Config{Mode: discover.ModeSQL}, local, nil)
		local.Table = func() []discover.Server {
			if rows := table.Load(); rows != nil {
				return *rows
			}
			return nil
		}
		sql := discover.New(discover.Config{Mode: discover.ModeSQL}, local, nil)
		ended := make(chan error, 1)
		go func() { ended <- sql.Run(ctx) }()
		synctest.Wait()

		for name, source := range map[string]discover.Source{"alone": alone, "without a table": noTable} {
			if got := source.Servers(); len(got) != 1 || got[0] != self {
				t.Errorf("%s: got %v, want this server", name, got)
			}
		}
		if got := sql.Servers(); got != nil {
			t.Errorf("got %v of a table that was not read, want that it is unknown", got)
		}
		isAnnounced := func(change func()) bool {
			changed := sql.Changed()
			change()
			time.Sleep(2 * time.Second)
			select {
			case <-changed:
				return true
			default:
				return false
			}
		}
		b, a := discover.Server{ID: "b", Ready: true}, discover.Server{ID: "a"}
		for _, tt := range []struct {
			name      string
			table     []discover.Server
			announced bool
			want      string
		}{
			{"the table is read", []discover.Server{}, true, ""},
			{"servers come", []discover.Server{b, a}, true, "a  unready, b  ready"},
			{"a row is renewed", []discover.Server{{ID: "b", Ready: true, LastUpdated: time.Now()}, a}, false, "a  unready, b  ready"},
			{"the order differs", []discover.Server{a, b}, false, "a  unready, b  ready"},
			{"a server drains", []discover.Server{a, {ID: "b"}}, true, "a  unready, b  unready"},
			{"a server goes", []discover.Server{b}, true, "b  ready"},
		} {
			if got := isAnnounced(func() { table.Store(&tt.table) }); got != tt.announced {
				t.Errorf("%s: announced: %v, want %v", tt.name, got, tt.announced)
			}
			if got := describe(sql.Servers()); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
		}
		sql.Servers()[0].ID = "changed"
		if got := describe(sql.Servers()); got != "b  ready" {
			t.Errorf("got %s after a caller changed its snapshot", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestOwnAddress checks that a server shows an address at which others find it.
func TestOwnAddress(t *testing.T) {
	for listening, want := range map[string]string{"127.0.0.1:7002": "https://127.0.0.1:7002", "10.1.2.3:80": "https://10.1.2.3:80", "[2001:db8::1]:80": "https://[2001:db8::1]:80"} {
		address, url := discover.AddressURL(true, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(listening)))
		if url != want || !address.IsValid() {
			t.Errorf("%s: got %v, %s, want %s", listening, address, url, want)
		}
	}
	address, url := discover.AddressURL(false, &net.TCPAddr{IP: net.IPv6unspecified, Port: 7002})
	if !address.IsValid() || address.IsUnspecified() || url != "http://"+netip.AddrPortFrom(address, 7002).String() {
		t.Errorf("got %v, %s for all addresses", address, url)
	}
}
