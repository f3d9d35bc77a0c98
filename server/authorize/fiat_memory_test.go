package authorize

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vedette-io/vedette"
)

// heapBytes returns the memory in use.
func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLongAnswersDeny checks an answer that never ends. It is not read to the end, nor again.
func TestLongAnswersDeny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		f := newFakeFiat(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"admin":true,"accounts":[{}`))
			for piece := []byte(strings.Repeat(",{}", 10_000)); sent < 1<<30; sent += len(piece) {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		})
		a := f.newAuthorizer(t)
		err := a.CheckAccount(t.Context(), devCaller, "prod", Read)
		synctest.Wait()
		if vedette.KindOf(err) != vedette.Denied || sent > 10<<20 || len(f.recorded()) != 1 {
			t.Errorf("got %v after %d requests and %d bytes, want a denial after one request and 8 MiB", err, len(f.recorded()), sent)
		}
	})
}

// TestCachedPermissionsAreBounded caches the permissions of many users with very many applications.
func TestCachedPermissionsAreBounded(t *testing.T) {
	var answer strings.Builder
	answer.WriteString(`{"admin":true,"applications":[{}`)
	for i := range 40_000 {
		fmt.Fprintf(&answer, `,{"name":"application-%d-%d","authorizations":["READ"]}`, i, i)
	}
	answer.WriteString(`]}`)
	synctest.Test(t, func(t *testing.T) {
		a := newFakeFiat(t, serveBody(answer.String())).newAuthorizer(t)
		before := heapBytes()
		for i := range 20 {
			if err := a.CheckAccount(t.Context(), Caller{User: fmt.Sprint("user ", i)}, "prod", Write); err != nil {
				t.Fatal(errors.Unwrap(err))
			}
		}
		if used := heapBytes() - before; used > 60<<20 {
			t.Errorf("the permissions of 20 users take %d MiB, want at most 60", used>>20)
		}
		runtime.KeepAlive(a)
	})
}

// TestAnswersShareMemory lets Fiat keep many users' large answers back, when all but their end has arrived. Together
// they take little memory, and a user with a short answer does not wait for them.
func TestAnswersShareMemory(t *testing.T) {
	large := []byte(`{"admin":true,"applications":[{}` + strings.Repeat(",{}", 2<<20))
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a := newFakeFiat(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/honest") {
				_, _ = w.Write([]byte(`{"admin":true}`))
				return
			}
			_, _ = w.Write(large)
			<-release
			_, _ = w.Write([]byte(`]}`))
		}).newAuthorizer(t)
		before := heapBytes()
		for i := range 20 {
			go func() { _ = a.CheckAccount(t.Context(), Caller{User: fmt.Sprint("user ", i)}, "prod", Write) }()
		}
		synctest.Wait()
		const limit = 2 * maxAnswersBytes // with what the test and the race detector take
		if used := heapBytes() - before; used > limit {
			t.Errorf("the answers take %d MiB, want at most %d", used>>20, limit>>20)
		}
		if err := a.CheckAccount(t.Context(), Caller{User: "honest"}, "prod", Write); err != nil {
			t.Errorf("a short answer beside long ones: %v", err)
		}
		close(release)
		time.Sleep(time.Minute) // until the server gives up
		synctest.Wait()
	})
}
