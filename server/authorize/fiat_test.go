package authorize

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// fakeFiat is a Fiat that speaks HTTP over pipes, so that the clock of a
// synctest bubble goes on while it is waited for.
type fakeFiat struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu       sync.Mutex
	start    time.Time
	requests []recordedRequest
}

type recordedRequest struct {
	at     time.Duration // since the double was started
	path   string        // as it stood in the request
	header http.Header
}

// newFakeFiat starts a Fiat that answers by a handler.
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

// Accept, Close and Addr make it a net.Listener.
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

// newAuthorizer asks the double.
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

// devCaller asks as somebody whom Gate found entitled to "prod".
var devCaller = Caller{User: "dev@example.com", Accounts: []string{"Prod"}}

func TestFiatPermissions(t *testing.T) {
	const unknown = `{"applications":[{"name":"web","authorizations":["READ"]},{"name":"mute","authorizations":[]}],"allowAccessToUnknownApplications":true}`
	for _, tt := range []struct {
		why, body, resource, name string
		access                    Access
		allowed                   bool
	}{
		{"what is granted", "", "account", "prod", Read, true},
		{"what is not granted", "", "account", "prod", Write, false},
		{"in another case", "", "account", "TEST", Execute, true},
		{"without authorizations", "", "account", "seen", Read, false},
		{"that Fiat does not name", "", "account", "other", Read, false},
		{"what is granted", "", "application", "web", Execute, true},
		{"in another case", "", "application", "WEB", Read, true},
		{"what is not granted", "", "application", "web", Write, false},
		{"with no authorizations", "", "application", "secret", Read, false},
		{"that Fiat does not know", "", "application", "new", Read, false},
		{"without a name", "", "application", "", Read, false},
		{"an administrator may read what is not named", `{"admin":true}`, "account", "other", Write, true},
		{"and applications", `{"admin":true}`, "application", "other", Write, true},
		{"unknown ones are open where Fiat says so", unknown, "application", "new", Write, true},
		{"known ones are not, then", unknown, "application", "web", Write, false},
		{"nor those that nobody may use", unknown, "application", "mute", Read, false},
		{"nor what has no name", unknown, "application", "", Read, false},
		{"an account that Fiat does not know is closed all the same", unknown, "account", "new", Read, false},
	} {
		t.Run(tt.resource+" "+tt.why, func(t *testing.T) {
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

func checkDecision(t *testing.T, err error, allowed bool) {
	t.Helper()
	if allowed && err != nil {
		t.Errorf("refused: %v", err)
	}
	if !allowed && (vedette.KindOf(err) != vedette.Denied || err.Error() != "Access is denied") {
		t.Errorf("got %v, want a denial", err)
	}
}

// TestUnreadableAnswersDeny holds guarantee 8.
func TestUnreadableAnswersDeny(t *testing.T) {
	for _, tt := range []struct {
		why         string
		handler     http.HandlerFunc
		user        string
		requests    int           // how often
		deniedAfter time.Duration // the denial
	}{
		{"the user is not known", serveStatus(404), "dev", 1, 0},
		{"Fiat refuses", serveStatus(403), "dev", 1, 0},
		{"a page to log in at", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "dev", 1, 0},
		// Waits of 0.5, 0.75, 1.125, 1.6875, 2.53125 s; the next would end after 10 s.
		{"Fiat fails", serveStatus(500), "dev", 6, 6593750 * time.Microsecond},
		{"Fiat is overloaded", serveStatus(429), "dev", 6, 6593750 * time.Microsecond},
		{"what comes is no JSON", serveBody("<html>admin</html>"), "dev", 6, 6593750 * time.Microsecond},
		{"what comes has an end that is none", serveBody(`{"admin":true}}`), "dev", 6, 6593750 * time.Microsecond},
		{"what comes is cut off", serveBody(`{"admin":true,"accounts":[`), "dev", 6, 6593750 * time.Microsecond},
		{"what comes is of another type", serveBody(`{"admin":"true"}`), "dev", 6, 6593750 * time.Microsecond},
		{"what comes is a list", serveBody(`[{"admin":true}]`), "dev", 6, 6593750 * time.Microsecond},
		{"what comes says nothing", serveBody(`{}`), "dev", 1, 0},
		{"what comes is nothing", serveBody(`null`), "dev", 1, 0},
		{"Fiat hangs", serveNothing, "dev", 3, 10 * time.Second},
		{"a name that is a path", serveBody(`{"admin":true}`), "..", 0, 0},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeFiat(t, tt.handler)
				a, start := f.newAuthorizer(t), time.Now()
				checkDecision(t, a.CheckAccount(t.Context(), Caller{User: tt.user, Accounts: []string{"prod"}}, "prod", Read), false)
				if elapsed := time.Since(start); elapsed != tt.deniedAfter || len(f.recorded()) != tt.requests {
					t.Errorf("denied after %s and %d questions; want %s and %d", elapsed, len(f.recorded()), tt.deniedAfter, tt.requests)
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
		checkDecision(t, a.CheckApplication(t.Context(), devCaller, "web", Read), false)
		if _, err := a.Readable(t.Context(), devCaller); vedette.KindOf(err) != vedette.Denied {
			t.Errorf("got %v, want a denial", err)
		}
	})
}

func TestFailedRequestsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := 0
		f := newFakeFiat(t, func(w http.ResponseWriter, r *http.Request) {
			if times++; times < 3 {
				serveStatus(502)(w, r)
				return
			}
			serveBody(`{"accounts":[{"name":"prod","authorizations":["WRITE"]}]}`)(w, r)
		})
		checkDecision(t, f.newAuthorizer(t).CheckAccount(t.Context(), devCaller, "prod", Write), true)
		for i, want := range []time.Duration{0, 500 * time.Millisecond, 1250 * time.Millisecond} {
			if got := f.recorded()[i].at; got != want {
				t.Errorf("question %d came at %s, want %s", i, got, want)
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
				t.Fatalf("%d questions, want %d", got, requests)
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
		a := f.newAuthorizer(t, func(c *FiatConfig) { c.CacheSize = 2 })
		for i, step := range []struct {
			user     string
			requests int
		}{{"one", 1}, {"two", 2}, {"one", 2}, {"three", 3}, {"two", 3}, {"one", 4}, {"three", 4}, {"two", 5}} {
			checkDecision(t, a.CheckAccount(t.Context(), Caller{User: step.user}, "prod", Read), true)
			if got := len(f.recorded()); got != step.requests {
				t.Errorf("step %d, %s: %d questions, want %d", i, step.user, got, step.requests)
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
				t.Errorf("who left got %v", err)
			}
		})
		synctest.Wait()
		for range 50 {
			all.Go(func() { checkDecision(t, a.CheckAccount(t.Context(), devCaller, "prod", Read), true) })
		}
		synctest.Wait()
		leave(context.Canceled) // who asked first
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
		checkDecision(t, a.CheckAccount(t.Context(), devCaller, "prod", Write), false) // Fiat did answer
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
			checkDecision(t, a.CheckAccount(t.Context(), CallerOf(r), "prod", Read), false)
		}
		first, second := f.recorded()[0], f.recorded()[1]
		if first.path != "/authorize/a%2Fb%20c" || second.path != "/authorize/anonymous" {
			t.Errorf("asked for %s and %s", first.path, second.path)
		}
		if h := first.header; h.Get("X-SPINNAKER-EXECUTION-ID") != "01J" || h.Get("X-SPINNAKER-USER") != "a/b c" || h.Get("Authorization") != "" {
			t.Errorf("passed on %v", h)
		}
		if h := second.header; h.Get("X-SPINNAKER-USER") != Anonymous {
			t.Errorf("passed on %v", h)
		}
	})
}

func TestReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeFiat(t, serveFile(t, "dev.json"))
		isReadable, err := f.newAuthorizer(t).Readable(t.Context(), devCaller)
		if err != nil {
			t.Fatal(err)
		}
		if !isReadable("prod") || !isReadable("test") || isReadable("seen") || isReadable("other") {
			t.Errorf("prod %t, test %t, seen %t, other %t", isReadable("prod"), isReadable("test"), isReadable("seen"), isReadable("other"))
		}
	})
}

func TestFiatAddresses(t *testing.T) {
	for address, good := range map[string]bool{
		"http://spin-fiat:7003": true, "https://x.example.com/fiat/": true,
		"": false, "spin-fiat:7003": false, "ftp://x": false, "http://": false, "http://x?y": false, "http://x/%zz": false,
	} {
		if _, err := New(Config{Fiat: &FiatConfig{BaseURL: address}}); (err == nil) != good || err != nil && vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%q: %v", address, err)
		}
	}
}
