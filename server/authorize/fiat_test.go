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

// double is a Fiat that speaks HTTP over pipes, so that the clock of a
// synctest bubble goes on while it is waited for.
type double struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu    sync.Mutex
	start time.Time
	asked []question
}

type question struct {
	at     time.Duration // since the double was started
	path   string        // as it stood in the request
	header http.Header
}

// newDouble starts a Fiat that answers by a handler.
func newDouble(t *testing.T, answer http.HandlerFunc) *double {
	d := &double{conns: make(chan net.Conn), closed: make(chan struct{}), start: time.Now()}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		d.asked = append(d.asked, question{time.Since(d.start), r.URL.EscapedPath(), r.Header.Clone()})
		d.mu.Unlock()
		answer(w, r)
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(d)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return d
}

// Accept, Close and Addr make it a net.Listener.
func (d *double) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *double) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

func (d *double) Addr() net.Addr { return &net.UnixAddr{Name: "fiat"} }

func (d *double) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case d.conns <- far:
		return near, nil
	case <-d.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *double) questions() []question {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]question(nil), d.asked...)
}

// authority asks the double.
func (d *double) authority(t *testing.T, change ...func(*Fiat)) *Authority {
	t.Helper()
	transport := &http.Transport{DialContext: d.dial, DisableKeepAlives: true}
	cfg := &Fiat{BaseURL: "http://fiat:7003/", Transport: transport}
	for _, f := range change {
		f(cfg)
	}
	a, err := New(Config{Fiat: cfg})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func says(t *testing.T, file string) http.HandlerFunc {
	body, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
}

func answers(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func fails(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"message":"no"}`, status) }
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// dev asks as somebody whom Gate found entitled to "prod".
var dev = Caller{User: "dev@example.com", Accounts: []string{"Prod"}}

func TestWhatFiatSaysCounts(t *testing.T) {
	const unknown = `{"applications":[{"name":"web","authorizations":["READ"]},{"name":"mute","authorizations":[]}],"allowAccessToUnknownApplications":true}`
	for _, tt := range []struct {
		why, answer, thing, name string
		access                   Access
		allowed                  bool
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
		t.Run(tt.thing+" "+tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := says(t, "dev.json")
				if tt.answer != "" {
					handler = answers(tt.answer)
				}
				a := newDouble(t, handler).authority(t)
				var err error
				if tt.thing == "account" {
					err = a.Account(t.Context(), dev, vedette.AccountName(tt.name), tt.access)
				} else {
					err = a.Application(t.Context(), dev, tt.name, tt.access)
				}
				check(t, err, tt.allowed)
			})
		})
	}
}

func check(t *testing.T, err error, allowed bool) {
	t.Helper()
	if allowed && err != nil {
		t.Errorf("refused: %v", err)
	}
	if !allowed && (vedette.KindOf(err) != vedette.Denied || err.Error() != "Access is denied") {
		t.Errorf("got %v, want a denial", err)
	}
}

// TestWhatCantBeReadDenies holds guarantee 8.
func TestWhatCantBeReadDenies(t *testing.T) {
	for _, tt := range []struct {
		why   string
		says  http.HandlerFunc
		user  string
		asked int           // how often
		until time.Duration // the denial
	}{
		{"the user is not known", fails(404), "dev", 1, 0},
		{"Fiat refuses", fails(403), "dev", 1, 0},
		{"a page to log in at", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "dev", 1, 0},
		// Waits of 0.5, 0.75, 1.125, 1.6875, 2.53125 s; the next would end after 10 s.
		{"Fiat fails", fails(500), "dev", 6, 6593750 * time.Microsecond},
		{"Fiat is overloaded", fails(429), "dev", 6, 6593750 * time.Microsecond},
		{"what comes is no JSON", answers("<html>admin</html>"), "dev", 6, 6593750 * time.Microsecond},
		{"what comes has an end that is none", answers(`{"admin":true}}`), "dev", 6, 6593750 * time.Microsecond},
		{"what comes is cut off", answers(`{"admin":true,"accounts":[`), "dev", 6, 6593750 * time.Microsecond},
		{"what comes is of another type", answers(`{"admin":"true"}`), "dev", 6, 6593750 * time.Microsecond},
		{"what comes is a list", answers(`[{"admin":true}]`), "dev", 6, 6593750 * time.Microsecond},
		{"what comes says nothing", answers(`{}`), "dev", 1, 0},
		{"what comes is nothing", answers(`null`), "dev", 1, 0},
		{"Fiat hangs", hangs, "dev", 3, 10 * time.Second},
		{"a name that is a path", answers(`{"admin":true}`), "..", 0, 0},
	} {
		t.Run(tt.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDouble(t, tt.says)
				a, start := d.authority(t), time.Now()
				check(t, a.Account(t.Context(), Caller{User: tt.user, Accounts: []string{"prod"}}, "prod", Read), false)
				if took := time.Since(start); took != tt.until || len(d.questions()) != tt.asked {
					t.Errorf("denied after %s and %d questions; want %s and %d", took, len(d.questions()), tt.until, tt.asked)
				}
			})
		})
	}
}

func TestFiatThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, answers(`{"admin":true}`))
		a := d.authority(t)
		_ = d.Close()
		check(t, a.Application(t.Context(), dev, "web", Read), false)
		if _, err := a.Readable(t.Context(), dev); vedette.KindOf(err) != vedette.Denied {
			t.Errorf("got %v, want a denial", err)
		}
	})
}

func TestItIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := 0
		d := newDouble(t, func(w http.ResponseWriter, r *http.Request) {
			if times++; times < 3 {
				fails(502)(w, r)
				return
			}
			answers(`{"accounts":[{"name":"prod","authorizations":["WRITE"]}]}`)(w, r)
		})
		check(t, d.authority(t).Account(t.Context(), dev, "prod", Write), true)
		for i, want := range []time.Duration{0, 500 * time.Millisecond, 1250 * time.Millisecond} {
			if got := d.questions()[i].at; got != want {
				t.Errorf("question %d came at %s, want %s", i, got, want)
			}
		}
	})
}

func TestAnAnswerCountsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, says(t, "dev.json"))
		a := d.authority(t)
		ask := func(user string, questions int) {
			t.Helper()
			check(t, a.Account(t.Context(), Caller{User: user}, "prod", Read), true)
			if got := len(d.questions()); got != questions {
				t.Fatalf("%d questions, want %d", got, questions)
			}
		}
		ask("one", 1)
		ask("two", 2)
		time.Sleep(20*time.Second - time.Nanosecond)
		ask("one", 2)
		time.Sleep(time.Nanosecond)
		ask("one", 3)
		ask("one", 3)
	})
}

func TestOnlySoManyUsersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, says(t, "dev.json"))
		a := d.authority(t, func(f *Fiat) { f.CacheUsers = 2 })
		for i, step := range []struct {
			user      string
			questions int
		}{{"one", 1}, {"two", 2}, {"one", 2}, {"three", 3}, {"two", 3}, {"one", 4}, {"three", 4}, {"two", 5}} {
			check(t, a.Account(t.Context(), Caller{User: step.user}, "prod", Read), true)
			if got := len(d.questions()); got != step.questions {
				t.Errorf("step %d, %s: %d questions, want %d", i, step.user, got, step.questions)
			}
		}
	})
}

func TestManyAtOnceAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		d := newDouble(t, func(w http.ResponseWriter, r *http.Request) {
			<-release
			says(t, "dev.json")(w, r)
		})
		a := d.authority(t)
		var all sync.WaitGroup
		first, leave := context.WithCancelCause(t.Context())
		all.Go(func() {
			if err := a.Account(first, dev, "prod", Read); !errors.Is(err, context.Canceled) {
				t.Errorf("who left got %v", err)
			}
		})
		synctest.Wait()
		for range 50 {
			all.Go(func() { check(t, a.Account(t.Context(), dev, "prod", Read), true) })
		}
		synctest.Wait()
		leave(context.Canceled) // who asked first
		synctest.Wait()
		close(release)
		all.Wait()
		if got := len(d.questions()); got != 1 {
			t.Errorf("%d questions", got)
		}
	})
}

func TestFallbackIsTheCallersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 503
		d := newDouble(t, func(w http.ResponseWriter, r *http.Request) { fails(status)(w, r) })
		a := d.authority(t, func(f *Fiat) { f.LegacyFallback = true })
		check(t, a.Account(t.Context(), dev, "prod", Write), true)
		check(t, a.Account(t.Context(), dev, "test", Read), false)
		check(t, a.Application(t.Context(), dev, "web", Write), true)
		check(t, a.Application(t.Context(), dev, "", Read), false)
		check(t, a.Account(t.Context(), Caller{User: dev.User}, "prod", Read), false) // the same user without the header
		status = 404
		check(t, a.Account(t.Context(), dev, "prod", Write), false) // Fiat did answer
	})
}

func TestWhoAsksIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, answers(`{}`))
		a := d.authority(t)
		for _, user := range []string{"a/b c", ""} {
			r, err := http.NewRequest(http.MethodGet, "/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-SPINNAKER-USER", user)
			r.Header.Set("X-SPINNAKER-EXECUTION-ID", "01J")
			r.Header.Set("Authorization", "Bearer x")
			check(t, a.Account(t.Context(), CallerOf(r), "prod", Read), false)
		}
		first, second := d.questions()[0], d.questions()[1]
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
		d := newDouble(t, says(t, "dev.json"))
		may, err := d.authority(t).Readable(t.Context(), dev)
		if err != nil {
			t.Fatal(err)
		}
		if !may("prod") || !may("test") || may("seen") || may("other") {
			t.Errorf("prod %t, test %t, seen %t, other %t", may("prod"), may("test"), may("seen"), may("other"))
		}
	})
}

func TestAddressesOfFiat(t *testing.T) {
	for address, good := range map[string]bool{
		"http://spin-fiat:7003": true, "https://x.example.com/fiat/": true,
		"": false, "spin-fiat:7003": false, "ftp://x": false, "http://": false, "http://x?y": false, "http://x/%zz": false,
	} {
		if _, err := New(Config{Fiat: &Fiat{BaseURL: address}}); (err == nil) != good || err != nil && vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%q: %v", address, err)
		}
	}
}
