package authorize

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/requestid"
)

// fakeFiat is a Fiat that speaks HTTP over pipes, because network connections do not advance the
// clock of a synctest bubble.
type fakeFiat struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	start    time.Time
	requests []recordedRequest
}

type recordedRequest struct {
	at     time.Duration // since the fake was started
	path   string        // as sent
	header http.Header
}

// newFakeFiat starts a Fiat that answers with handler.
func newFakeFiat(t *testing.T, handler http.HandlerFunc) *fakeFiat {
	f := &fakeFiat{conns: make(chan net.Conn), closed: make(chan struct{}), start: time.Now()}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, recordedRequest{time.Since(f.start), r.URL.EscapedPath(), r.Header.Clone()})
		f.mu.Unlock()
		handler(w, r)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(f)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return f
}

func (f *fakeFiat) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *fakeFiat) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

func (f *fakeFiat) Addr() net.Addr { return &net.UnixAddr{Name: "fiat"} }

func (f *fakeFiat) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case f.conns <- far:
		return near, nil
	case <-f.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *fakeFiat) recorded() []recordedRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]recordedRequest(nil), f.requests...)
}

// newAuthorizer returns an Authorizer that uses the fake.
func (f *fakeFiat) newAuthorizer(t *testing.T, change ...func(*FiatConfig)) *Authorizer {
	t.Helper()
	transport := &http.Transport{DialContext: f.dial, DisableKeepAlives: true}
	cfg := &FiatConfig{BaseURL: "http://fiat:7003/", Transport: transport}
	for _, c := range change {
		c(cfg)
	}
	a, err := New(Config{Fiat: cfg})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func serveFile(t *testing.T, file string) http.HandlerFunc {
	body, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
}

func serveBody(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func serveStatus(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"message":"no"}`, status) }
}

func serveNothing(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// devCaller is a user to whom Gate grants access to "prod".
var devCaller = Caller{User: "dev@example.com", Accounts: []string{"prod"}}

func TestFiatPermissionsDecide(t *testing.T) {
	const unknown = `{"applications":[{"name":"web","authorizations":["READ"]},{"name":"mute","authorizations":[]}],"allowAccessToUnknownApplications":true}`
	for _, tt := range []struct {
		scenario, body, resource, name string
		access                         Access
		allowed                        bool
	}{
		{"granted", "", "account", "prod", Read, true},
		{"not granted", "", "account", "prod", Write, false},
		{"granted to an account in another case", "", "account", "TEST", Execute, false},
		{"granted to an account in another case", "", "account", "Prod", Read, false},
		{"granted, name in the same case", "", "account", "Test", Execute, true},
		{"granted to an account with a space", `{"accounts":[{"name":"prod ","authorizations":["READ"]}]}`, "account", "prod", Read, false},
		{"granted to both cases, each its own", `{"accounts":[{"name":"LAB","authorizations":["READ","WRITE"]},{"name":"lab","authorizations":["READ"]}]}`,
			"account", "lab", Write, false},
		{"members in another case", `{"Admin":true}`, "account", "lab", Write, false},
		{"account without authorizations", "", "account", "seen", Read, false},
		{"account that Fiat does not name", "", "account", "other", Read, false},
		{"granted", "", "application", "web", Execute, true},
		{"granted, name in another case", "", "application", "WEB", Read, true},
		{"not granted", "", "application", "web", Write, false},
		{"application without authorizations", "", "application", "secret", Read, false},
		{"application that Fiat does not name", "", "application", "new", Read, false},
		{"empty name", "", "application", "", Read, false},
		{"an administrator may write any account", `{"admin":true}`, "account", "other", Write, true},
		{"an administrator may write any application", `{"admin":true}`, "application", "other", Write, true},
		{"unknown applications allowed", unknown, "application", "new", Write, true},
		{"unknown applications allowed, known application", unknown, "application", "web", Write, false},
		{"unknown applications allowed, application without authorizations", unknown, "application", "mute", Read, false},
		{"unknown applications allowed, empty name", unknown, "application", "", Read, false},
		{"unknown applications allowed, unknown account", unknown, "account", "new", Read, false},
	} {
		t.Run(tt.resource+" "+tt.scenario, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := serveFile(t, "dev.json")
				if tt.body != "" {
					handler = serveBody(tt.body)
				}
				a := newFakeFiat(t, handler).newAuthorizer(t)
				var err error
				if tt.resource == "account" {
					err = a.CheckAccount(t.Context(), devCaller, vedette.AccountName(tt.name), tt.access)
				} else {
					err = a.CheckApplication(t.Context(), devCaller, tt.name, tt.access)
				}
				checkDecision(t, err, tt.allowed)
			})
		})
	}
}

// denialPattern matches Clouddriver's messages.
var denialPattern = regexp.MustCompile(`^Access (is denied|denied to (account|application) \S+ - required authorization: (READ|WRITE|EXECUTE))$`)

func checkDecision(t *testing.T, err error, allowed bool) {
	t.Helper()
	if allowed && err != nil {
		t.Errorf("got %v, want access", err)
	}
	if !allowed && (vedette.KindOf(err) != vedette.Denied || !denialPattern.MatchString(err.Error())) {
		t.Errorf("got %v, want a denial", err)
	}
}

// checkUnknown checks that an error says that permissions cannot be looked up now, and nothing about Fiat's address and answer.
func checkUnknown(t *testing.T, err error, user string) {
	t.Helper()
	want := "the permissions of " + user + " cannot be looked up now, because Fiat does not answer as it should: try again"
	if vedette.KindOf(err) != vedette.Unavailable || err.Error() != want {
		t.Errorf("got %v (%s), want %q", err, vedette.KindOf(err), want)
	}
}

// TestUnreadableAnswersDeny tests guarantee 8.
func TestUnreadableAnswersDeny(t *testing.T) {
	for _, tt := range []struct {
		name        string
		handler     http.HandlerFunc
		user        string
		requests    int           // number of requests
		deniedAfter time.Duration // time until the denial
		unknown     bool          // the permissions may be known later
	}{
		{"unknown user", serveStatus(404), "dev", 1, 0, false},
		{"Fiat refuses", serveStatus(403), "dev", 1, 0, false},
		{"redirect to a login page", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "dev", 1, 0, false},
		// Waits of 0.5, 0.75, 1.125, 1.6875 and 2.53125 s; another one would end after 10 s.
		{"Fiat fails", serveStatus(500), "dev", 6, 6593750 * time.Microsecond, true},
		{"Fiat is overloaded", serveStatus(429), "dev", 6, 6593750 * time.Microsecond, true},
		{"not JSON", serveBody("<html>admin</html>"), "dev", 6, 6593750 * time.Microsecond, true},
		{"data after the JSON", serveBody(`{"admin":true}}`), "dev", 6, 6593750 * time.Microsecond, true},
		{"truncated JSON", serveBody(`{"admin":true,"accounts":[`), "dev", 6, 6593750 * time.Microsecond, true},
		{"wrong type", serveBody(`{"admin":"true"}`), "dev", 6, 6593750 * time.Microsecond, true},
		{"a list", serveBody(`[{"admin":true}]`), "dev", 6, 6593750 * time.Microsecond, true},
		{"an empty object", serveBody(`{}`), "dev", 1, 0, false},
		{"null", serveBody(`null`), "dev", 1, 0, false},
		{"two members of one name", serveBody(`{"accounts":[{"name":"other","name":"prod","authorizations":["READ"]}]}`), "dev", 6, 6593750 * time.Microsecond, true},
		{"Fiat hangs", serveNothing, "dev", 3, 10 * time.Second, true},
		{"a user name that is a path", serveBody(`{"admin":true}`), "..", 0, 0, false},
		{"a user name with a path", serveBody(`{"admin":true}`), "dev/../admin", 0, 0, false},
		{"a user name with an escaped path", serveBody(`{"admin":true}`), "%2e%2e", 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeFiat(t, tt.handler)
				a, start := f.newAuthorizer(t), time.Now()
				err := a.CheckAccount(t.Context(), Caller{User: tt.user, Accounts: []string{"prod"}}, "prod", Read)
				if tt.unknown {
					checkUnknown(t, err, tt.user)
				} else {
					checkDecision(t, err, false)
				}
				if elapsed := time.Since(start); elapsed != tt.deniedAfter || len(f.recorded()) != tt.requests {
					t.Errorf("got denied after %s and %d requests, want %s and %d", elapsed, len(f.recorded()), tt.deniedAfter, tt.requests)
				}
			})
		})
	}
}

func TestUnreachableFiatDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeFiat(t, serveBody(`{"admin":true}`))
		a := f.newAuthorizer(t)
		_ = f.Close()
		checkUnknown(t, a.CheckAccount(t.Context(), devCaller, "prod", Write), devCaller.User)
		checkUnknown(t, a.CheckApplication(t.Context(), devCaller, "web", Read), devCaller.User)
		_, err := a.Readable(t.Context(), devCaller)
		checkUnknown(t, err, devCaller.User)
		_, err = a.ReadableApplications(t.Context(), devCaller)
		checkUnknown(t, err, devCaller.User)
	})
}

func TestFailedRequestsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := 0
		f := newFakeFiat(t, func(w http.ResponseWriter, r *http.Request) {
			times++
			if times < 3 {
				serveStatus(502)(w, r)
				return
			}
			serveBody(`{"accounts":[{"name":"prod","authorizations":["WRITE"]}]}`)(w, r)
		})
		checkDecision(t, f.newAuthorizer(t).CheckAccount(t.Context(), devCaller, "prod", Write), true)
		for i, want := range []time.Duration{0, 500 * time.Millisecond, 1250 * time.Millisecond} {
			if got := f.recorded()[i].at; got != want {
				t.Errorf("request %d: got at %s, want %s", i, got, want)
			}
		}
	})
}

func TestAnswersAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeFiat(t, serveFile(t, "dev.json"))
		a := f.newAuthorizer(t)
		check := func(user string, requests int) {
			t.Helper()
			checkDecision(t, a.CheckAccount(t.Context(), Caller{User: user}, "prod", Read), true)
			if got := len(f.recorded()); got != requests {
				t.Fatalf("got %d requests, want %d", got, requests)
			}
		}
		check("one", 1)
		check("two", 2)
		time.Sleep(20*time.Second - time.Nanosecond)
		check("one", 2)
		time.Sleep(time.Nanosecond)
		check("one", 3)
		check("one", 3)
	})
}

func TestCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeFiat(t, serveFile(t, "dev.json"))
		a := f.newAuthorizer(t, func(c *FiatConfig) { c.Cache.MaxEntries = 2 })
		for i, step := range []struct {
			user     string
			requests int
		}{{"one", 1}, {"two", 2}, {"one", 2}, {"three", 3}, {"two", 3}, {"one", 4}, {"three", 4}, {"two", 5}} {
			checkDecision(t, a.CheckAccount(t.Context(), Caller{User: step.user}, "prod", Read), true)
			if got := len(f.recorded()); got != step.requests {
				t.Errorf("step %d, %s: got %d requests, want %d", i, step.user, got, step.requests)
			}
		}
	})
}

func TestConcurrentRequestsAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := newFakeFiat(t, func(w http.ResponseWriter, r *http.Request) {
			<-release
			serveFile(t, "dev.json")(w, r)
		})
		a := f.newAuthorizer(t)
		var all sync.WaitGroup
		first, leave := context.WithCancelCause(t.Context())
		all.Go(func() {
			if err := a.CheckAccount(first, devCaller, "prod", Read); !errors.Is(err, context.Canceled) {
				t.Errorf("caller that left: got %v", err)
			}
		})
		synctest.Wait()
		for range 50 {
			all.Go(func() { checkDecision(t, a.CheckAccount(t.Context(), devCaller, "prod", Read), true) })
		}
		synctest.Wait()
		leave(context.Canceled) // the first caller
		synctest.Wait()
		close(release)
		all.Wait()
		if got := len(f.recorded()); got != 1 {
			t.Errorf("%d questions", got)
		}
	})
}

func TestLegacyFallbackIsPerCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 503
		f := newFakeFiat(t, func(w http.ResponseWriter, r *http.Request) { serveStatus(status)(w, r) })
		a := f.newAuthorizer(t, func(c *FiatConfig) { c.LegacyFallback = true })
		checkDecision(t, a.CheckAccount(t.Context(), devCaller, "prod", Write), true)
		checkDecision(t, a.CheckAccount(t.Context(), devCaller, "test", Read), false)
		checkDecision(t, a.CheckApplication(t.Context(), devCaller, "web", Write), true)
		checkDecision(t, a.CheckApplication(t.Context(), devCaller, "", Read), false)
		checkDecision(t, a.CheckAccount(t.Context(), Caller{User: devCaller.User}, "prod", Read), false) // the same user without the header
		status = 404
		checkDecision(t, a.CheckAccount(t.Context(), devCaller, "prod", Write), false) // Fiat has answered
	})
}

func TestCallerHeadersAreForwarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeFiat(t, serveBody(`{}`))
		a := f.newAuthorizer(t)
		for _, user := range []string{"a/b c", ""} {
			r, err := http.NewRequest(http.MethodGet, "/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-SPINNAKER-USER", user)
			r.Header.Set("X-SPINNAKER-EXECUTION-ID", "01J")
			r.Header.Set("Authorization", "Bearer x")
			checkDecision(t, a.CheckAccount(requestid.With(t.Context(), "r-1"), CallerOf(r), "prod", Read), false)
		}
		first, second := f.recorded()[0], f.recorded()[1]
		if first.path != "/authorize/a%2Fb%20c" || second.path != "/authorize/anonymous" {
			t.Errorf("got requests for %s and %s", first.path, second.path)
		}
		if h := first.header; h.Get("X-SPINNAKER-EXECUTION-ID") != "01J" || h.Get("X-SPINNAKER-USER") != "a/b c" || h.Get("Authorization") != "" || h.Get(requestid.Header) != "r-1" {
			t.Errorf("got headers %v", h)
		}
		if h := second.header; h.Get("X-SPINNAKER-USER") != Anonymous {
			t.Errorf("got headers %v", h)
		}
	})
}

// TestDenialsNameTheirSubject compares messages with those of a Clouddriver whose Fiat does not
// know the user.
func TestDenialsNameTheirSubject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newFakeFiat(t, serveStatus(404)).newAuthorizer(t)
		_, readable := a.Readable(t.Context(), devCaller)
		for want, err := range map[string]error{
			"Access denied to account prod - required authorization: READ":       a.CheckAccount(t.Context(), devCaller, "prod", Read),
			"Access denied to application web - required authorization: EXECUTE": a.CheckApplication(t.Context(), devCaller, "web", Execute),
			"Access is denied": a.CheckApplication(t.Context(), devCaller, "", Read),
		} {
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if readable == nil || readable.Error() != "Access is denied" {
			t.Errorf("all accounts: got %v", readable)
		}
	})
}

func TestOnlyGrantedAccountsAreReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeFiat(t, serveFile(t, "dev.json"))
		isReadable, err := f.newAuthorizer(t).Readable(t.Context(), devCaller)
		if err != nil {
			t.Fatal(err)
		}
		if !isReadable("prod") || !isReadable("Test") || isReadable("test") || isReadable("seen") || isReadable("other") {
			t.Errorf("got prod %t, Test %t, test %t, seen %t, other %t", isReadable("prod"), isReadable("Test"), isReadable("test"), isReadable("seen"),
				isReadable("other"))
		}
	})
}

func TestInvalidFiatAddressesAreRejected(t *testing.T) {
	for address, good := range map[string]bool{
		"http://spin-fiat:7003": true, "https://x.example.com/fiat/": true,
		"": false, "spin-fiat:7003": false, "ftp://x": false, "http://": false, "http://x?y": false, "http://x/%zz": false,
	} {
		if _, err := New(Config{Fiat: &FiatConfig{BaseURL: address}}); (err == nil) != good || err != nil && vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%q: %v", address, err)
		}
	}
}
