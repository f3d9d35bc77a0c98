package middleware

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// bodyTest is a handler that reads bodies and holds them until it is released, as handlers hold manifests.
type bodyTest struct {
	*testing.T
	handler http.Handler
	read    map[string]int // requests whose body has arrived, by path
	release chan struct{}
}

func runBodyTest(t *testing.T, test func(*bodyTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bodyTest{T: t, read: map[string]int{}, release: make(chan struct{})}
		arrived := make(chan string)
		go func() {
			for path := range arrived {
				b.read[path]++
			}
		}()
		b.handler = LimitBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest) // as handlers take it
				return
			}
			arrived <- r.URL.Path
			<-b.release
		}), 0)
		test(b)
		close(b.release)
		time.Sleep(time.Minute)
		synctest.Wait()
		close(arrived)
	})
}

// send sends a body with an announced length from an address, as one of its users.
func (b *bodyTest) send(path, address, user string, announced int64, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, path, io.NopCloser(body))
	r.ContentLength, r.RemoteAddr = announced, address+":4000"
	r.Header.Set("X-SPINNAKER-USER", user)
	w := httptest.NewRecorder()
	go b.handler.ServeHTTP(w, r)
	synctest.Wait()
	return w
}

func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestAnnouncedBodiesCostNothing lets one client announce many large bodies, of which nothing arrives. Other
// clients must not notice, nor other requests of the client.
func TestAnnouncedBodiesCostNothing(t *testing.T) {
	runBodyTest(t, func(b *bodyTest) {
		for i, announced := range []int64{32 << 20, -1, 1 << 40} {
			for n := range 50 {
				reader, writer := io.Pipe()
				defer writer.Close()
				b.send("/slow", "192.0.2.1", fmt.Sprint("user ", i, n), announced, reader)
			}
		}
		b.send("/ops", "192.0.2.1", "honest", 20<<20, zeros(20<<20))
		b.send("/ops", "192.0.2.2", "honest", 30<<20, zeros(30<<20))
		if b.read["/ops"] != 2 {
			t.Errorf("got %d bodies beside those that do not arrive, want 2", b.read["/ops"])
		}
	})
}

// TestBodiesShareMemory lets one client send more than its share, as many users. It must wait for itself, and
// others must not.
func TestBodiesShareMemory(t *testing.T) {
	runBodyTest(t, func(b *bodyTest) {
		var last *httptest.ResponseRecorder
		for i, announced := range []int64{31 << 20, 31 << 20, -1} {
			last = b.send("/ops", "192.0.2.1", fmt.Sprint("user ", i), announced, zeros(31<<20))
		}
		if b.read["/ops"] != 1 {
			t.Errorf("got %d bodies of one client at a time, want 1", b.read["/ops"])
		}
		b.send("/others", "192.0.2.2", "user 0", 31<<20, zeros(31<<20))
		b.send("/others", "192.0.2.1", "user 0", 0, zeros(0))
		if b.read["/others"] != 2 {
			t.Errorf("got %d requests of others and without bodies, want 2", b.read["/others"])
		}
		// What the second one has may be granted to the third in the moment in which both give up. Then that one
		// waits again.
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if last.Code != http.StatusServiceUnavailable || last.Header().Get("Retry-After") == "" || !strings.Contains(last.Body.String(), "all 128 MiB of memory") {
			t.Errorf("a body that waited for memory: got %d %s, want 503 with Retry-After", last.Code, last.Body)
		}
	})
}

// TestLargeBodiesFit checks that the largest body that a handler accepts is within one client's share.
func TestLargeBodiesFit(t *testing.T) {
	runBodyTest(t, func(b *bodyTest) {
		if b.send("/ops", "192.0.2.1", "", 32<<20-1, zeros(32<<20-1)); b.read["/ops"] != 1 {
			t.Error("a body of 32 MiB was not accepted")
		}
	})
}

// TestSmallBodiesDoNotWait lets clients with many addresses fill the memory of bodies with large ones that do not
// end. A small body of somebody else must be read at once.
func TestSmallBodiesDoNotWait(t *testing.T) {
	runBodyTest(t, func(b *bodyTest) {
		for i := range 10 {
			reader, writer := io.Pipe()
			defer writer.Close()
			b.send("/slow", fmt.Sprint("192.0.2.", i+10), "", 32<<20, io.MultiReader(zeros(30<<20), reader))
		}
		b.send("/ops", "192.0.2.1", "", 500, zeros(500))
		b.send("/ops", "192.0.2.1", "", 64<<10, zeros(64<<10))
		if b.read["/ops"] != 2 {
			t.Errorf("got %d small bodies beside large ones that do not end, want 2", b.read["/ops"])
		}
	})
}

// TestBodiesFitTheProcess checks that a server with little memory accepts smaller bodies, and says so instead of asking
// for another try.
func TestBodiesFitTheProcess(t *testing.T) {
	server := httptest.NewServer(LimitBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}), 400<<20))
	defer server.Close()
	for _, tt := range []struct {
		bytes, announced int64
		want             int
	}{
		{8 << 20, 8 << 20, http.StatusOK}, {8<<20 - 1, -1, http.StatusOK},
		{8<<20 + 1, 8<<20 + 1, http.StatusRequestEntityTooLarge}, {9 << 20, -1, http.StatusRequestEntityTooLarge},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/ops", io.NopCloser(zeros(tt.bytes)))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = tt.announced
		response, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != tt.want || tt.want != http.StatusOK && (response.Header.Get("Retry-After") != "" || !strings.Contains(string(body), "larger than 8 MiB")) {
			t.Errorf("%d bytes, announced as %d: got %d %v %s, want %d", tt.bytes, tt.announced, response.StatusCode, response.Header, body, tt.want)
		}
	}
}
