package readlimit

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// TestSourcesCannotBeMultiplied checks which requests count as the same source.
func TestSourcesCannotBeMultiplied(t *testing.T) {
	trusted, err := ParseTrustedCallers([]string{"10.0.0.9", "10.1.0.0/16", "gate.spinnaker"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, address, user, certificate, want string
		verified                               bool
	}{
		{"an address", "192.0.2.1:4000", "", "", "192.0.2.1", false},
		{"a header does not change the source", "192.0.2.1:4001", "dev", "", "192.0.2.1", false},
		{"a network of IPv6 is one client", "[2001:db8::1]:4000", "dev", "", "2001:db8::/64", false},
		{"another address of it", "[2001:db8::ffff:2]:4000", "ops", "", "2001:db8::/64", false},
		{"a verified certificate", "192.0.2.1:4000", "dev", "orca", "192.0.2.1 CN=orca", true},
		{"a certificate that was not verified", "192.0.2.1:4000", "dev", "orca", "192.0.2.1", false},
		{"a trusted address", "10.0.0.9:4000", "dev", "", "10.0.0.9 dev", false},
		{"a trusted network", "10.1.2.3:4000", "dev", "", "10.1.2.3 dev", false},
		{"a certificate from a trusted network", "10.1.2.3:4000", "dev", "ann", "10.1.2.3 CN=ann", true},
		{"a certificate from a trusted network that was not verified", "10.1.2.3:4000", "dev", "ann", "10.1.2.3 dev", false},
		{"a trusted certificate", "192.0.2.1:4000", "dev", "gate.spinnaker", "192.0.2.1 CN=gate.spinnaker dev", true},
		{"a trusted name in a certificate that was not verified", "192.0.2.1:4000", "dev", "gate.spinnaker", "192.0.2.1", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = tt.address
		r.Header.Set("X-SPINNAKER-USER", tt.user)
		if tt.certificate != "" {
			c := &x509.Certificate{Subject: pkix.Name{CommonName: tt.certificate}}
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}
			if tt.verified {
				r.TLS.VerifiedChains = [][]*x509.Certificate{{c}}
			}
		}
		var got Caller
		trusted.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = CallerOf(r) })).ServeHTTP(nil, r)
		if want := (Caller{tt.want, tt.user}); got != want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, want)
		}
	}
	for _, invalid := range []string{"", "10.0.0.0/99", "two names"} {
		if _, err := ParseTrustedCallers([]string{invalid}); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%q: got %v, want an error", invalid, err)
		}
	}
}

// TestUsersOfASourceShareItsShare lets one client claim to be many users. They have no more than its share
// together, and take turns within it.
func TestUsersOfASourceShareItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(Config{Bytes: 100, UserShare: 30}.withDefaults())
		var held []*Grant
		for i := range 100 {
			if g := p.tryAcquire(Caller{"client", fmt.Sprint("user ", i)}, 10); g != nil {
				held = append(held, g)
			}
		}
		if len(held) != 5 {
			t.Errorf("one client with 100 users: got %d of 100 bytes, want 50", 10*len(held))
		}
		order := make(chan string, 10)
		ask := func(user string) {
			go func() {
				if g, err := p.acquire(t.Context(), Caller{"client", user}, 10); err == nil {
					order <- user
					g.Release()
				}
			}()
			synctest.Wait()
		}
		for range 3 {
			ask("greedy")
		}
		ask("modest")
		held[0].Release()
		synctest.Wait()
		close(order)
		var got []string
		for user := range order {
			got = append(got, user)
		}
		if fmt.Sprint(got) != "[greedy modest greedy greedy]" {
			t.Errorf("got %v, want turns of users", got)
		}
		acquire(t, p, "other", 50)() // what the client cannot have
		for _, g := range held {
			g.Release()
		}
		wantEmpty(t, p)
	})
}

// TestGrantWaitsOnlyForItsShare checks that a grant waits for more bytes only of its own share, and releases all of them.
func TestGrantWaitsOnlyForItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(Config{Bytes: 100, UserShare: 50}.withDefaults())
		grow := func(g *Grant, n int64) error { return g.Grow(t.Context(), n) }
		a, b := p.tryAcquire(caller("a"), 10), p.tryAcquire(caller("a"), 10)
		for _, g := range []*Grant{a, b} {
			if err := grow(g, 15); err != nil {
				t.Error(err)
			}
		}
		start := time.Now()
		if err := grow(a, 15); vedette.KindOf(err) != vedette.Unavailable || time.Since(start) != 10*time.Second {
			t.Errorf("a second grant has the rest of the share: got %v after %v, want vedette.Unavailable after 10s", err, time.Since(start))
		}
		if err := grow(a, 30); vedette.KindOf(err) != vedette.Unavailable || time.Since(start) != 10*time.Second {
			t.Errorf("more than one caller may ever have: got %v after %v, want an error at once", err, time.Since(start))
		}
		time.AfterFunc(time.Second, b.Release)
		if err := grow(a, 15); err != nil {
			t.Errorf("after a release: got %v", err)
		}
		a.Release()
		a.Release()
		wantEmpty(t, p)
	})
}
