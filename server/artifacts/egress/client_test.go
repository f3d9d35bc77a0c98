package egress_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/server/artifacts/egress"
)

// local allows the address on which httptest listens, and no other of this machine.
var local = egress.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, c *egress.Client, address string, header http.Header) (string, error) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.Get(t.Context(), egress.Request{URL: u, Header: header})
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	return string(text), err
}

func TestStatusErrorsHideTheURL(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "%s %s", r.URL, r.Header.Get("Private-Token"))
	})
	c := newClient(local, egress.Limits{})
	got, err := get(t, c, server+"/a%2Fb?ref=main", http.Header{"Private-Token": {"t0ken"}})
	if want := "/a%2Fb?ref=main t0ken"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	_, err = get(t, c, server+"/missing?token=t0ken", nil)
	var status *egress.StatusError
	if !errors.As(err, &status) || status.Status != http.StatusNotFound || strings.Contains(err.Error(), "t0ken") {
		t.Errorf("got %v, want status 404 without the URL", err)
	}
}

// TestAddressCountsNotItsSpelling checks that the address counts, not how it is written.
func TestAddressCountsNotItsSpelling(t *testing.T) {
	requests := 0
	server := serve(t, func(http.ResponseWriter, *http.Request) { requests++ })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(server, "http://"))
	c := newClient(egress.Policy{}, egress.Limits{ConnectTimeout: time.Minute})
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "169.254.169.254"} {
		var denied *egress.AddressError
		if _, err := get(t, c, "http://"+host+":"+port+"/", nil); !errors.As(err, &denied) {
			t.Errorf("%s: got %v, want an AddressError", host, err)
		}
	}
	if requests != 0 {
		t.Errorf("got %d requests, want none", requests)
	}
}

func TestInvalidURLs(t *testing.T) {
	c := newClient(local, egress.Limits{})
	for _, address := range []string{"file:///etc/passwd", "gopher://127.0.0.1/", "ftp://127.0.0.1/", "http://", "/path", "http:///path", ""} {
		if text, err := get(t, c, address, nil); err == nil {
			t.Errorf("%q: got %q, want an error", address, text)
		}
	}
}

// TestEachRedirectIsChecked checks each redirect as a URL of its own.
func TestEachRedirectIsChecked(t *testing.T) {
	for _, tt := range []struct{ name, location, want string }{
		{"metadata", "http://169.254.169.254/latest/meta-data/", "link-local"},
		{"another loopback address", "http://127.0.0.2:1/", "loopback"},
		{"a file", "file:///etc/passwd", "URLs must start with http"},
		{"itself, for ever", "/", "more than 10 redirects"},
		{"no host", "http://", "no host"},
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", tt.location)
			w.WriteHeader(http.StatusFound)
		})
		if text, err := get(t, newClient(local, egress.Limits{}), server, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %q, %v, want %q", tt.name, text, err, tt.want)
		}
	}
}

// TestRedirectsCheckRestrictions checks that the rules of an account hold for redirects.
func TestRedirectsCheckRestrictions(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secret") })
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) })
	first, _ := url.Parse(server)
	_, err := newClient(local, egress.Limits{}).Get(t.Context(), egress.Request{URL: first, Check: func(u *url.URL) error {
		if u.Host != first.Host {
			return errors.New("not this host")
		}
		return nil
	}})
	if err == nil || !strings.Contains(err.Error(), "not this host") {
		t.Errorf("got %v, want the error of Check", err)
	}
}

// TestRedirectsKeepCredentials checks that no header of the request reaches another host, and
// that a redirect back to the first one has them again.
func TestRedirectsKeepCredentials(t *testing.T) {
	var other http.Header
	var first string
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		other = r.Header
		http.Redirect(w, r, first+"/back", http.StatusFound)
	})
	first = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			fmt.Fprint(w, r.Header.Get("Private-Token"))
			return
		}
		http.Redirect(w, r, target, http.StatusFound)
	})
	got, err := get(t, newClient(local, egress.Limits{}), first+"/?token=q", http.Header{
		"Private-Token": {"t0ken"}, "Authorization": {"Bearer x"}, "Accept": {"text/plain"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Private-Token", "Authorization", "Referer"} {
		if value := other.Get(name); value != "" {
			t.Errorf("the other host got %s: %s, want none", name, value)
		}
	}
	if got != "t0ken" {
		t.Errorf("the first host got token %q, want t0ken", got)
	}
}

func TestSizeAndTimeAreLimited(t *testing.T) {
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 32<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	const noHeader = "timeout awaiting response headers"
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		limits  egress.Limits
		want    string
	}{
		{"an endless answer", endless, egress.Limits{MaxBytes: 1 << 20}, "larger than the limit of 1 MiB"},
		{"an answer that says how large it is", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000000000")
			w.WriteHeader(http.StatusOK)
		}, egress.Limits{MaxBytes: 1 << 20}, "larger than the limit of 1 MiB"},
		{"no answer", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, egress.Limits{StallTimeout: 20 * time.Millisecond}, noHeader},
		{"an answer that stalls", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "half")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, egress.Limits{StallTimeout: 100 * time.Millisecond}, "the server sent nothing more"},
		{"an answer that never ends", endless, egress.Limits{Timeout: 50 * time.Millisecond, MaxBytes: 1 << 50}, "the answer is not complete"},
		{"half an answer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "half")
		}, egress.Limits{}, "unexpected EOF"},
		{"an answer without a status", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			fmt.Fprint(conn, "garbage\r\n\r\n")
			conn.Close()
		}, egress.Limits{}, "malformed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := serve(t, tt.handler)
			_, err := get(t, newClient(local, tt.limits), server, nil)
			for err != nil && strings.Contains(err.Error(), noHeader) && tt.want != noHeader && tt.limits.StallTimeout < time.Minute {
				tt.limits.StallTimeout *= 4 // a busy machine may take that long for the header
				_, err = get(t, newClient(local, tt.limits), server, nil)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAnswerOfTheLimitPasses(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "1234") })
	if got, err := get(t, newClient(local, egress.Limits{MaxBytes: 4}), server, nil); err != nil || got != "1234" {
		t.Errorf("got %q, %v, want an answer of the size of the limit", got, err)
	}
}

func TestRequestEndsWithItsContext(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(gone)
	})
	u, _ := url.Parse(server)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := newClient(local, egress.Limits{}).Get(ctx, egress.Request{URL: u}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want canceled", err)
	}
	<-gone
}

// newClient returns a client with generous limits where none is given.
func newClient(policy egress.Policy, l egress.Limits) *egress.Client {
	return egress.New(policy, egress.Limits{MaxBytes: cmp.Or(l.MaxBytes, 64<<20), Timeout: cmp.Or(l.Timeout, time.Minute),
		StallTimeout: cmp.Or(l.StallTimeout, 30*time.Second), ConnectTimeout: cmp.Or(l.ConnectTimeout, 10*time.Second)})
}
