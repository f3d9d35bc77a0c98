package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/server/readlimit"
	"github.com/vedette-io/vedette/server/readtest"
)

// largeWorld returns a world with ConfigMaps of 100 KiB in one account. They cannot be
// compressed.
func largeWorld(t *testing.T, n int) *readtest.Fixture {
	w := readtest.New(t)
	w.Account("prod", "configmaps")
	for i := range n {
		w.Put("prod", configMap(i, 100<<10))
	}
	return w
}

func configMap(i, size int) string {
	b := make([]byte, size)
	for n := range b {
		b[n] = byte('a' + rand.IntN(26))
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%03d","namespace":"n"},"data":{"x":%q}}`, i, b)
}

// TestPageBytesLimit lists large objects page by page, like the command line. Each response is
// bounded in bytes, and together they have all objects.
func TestPageBytesLimit(t *testing.T) {
	const maxBytes = 350 << 10
	world := largeWorld(t, 20)
	cfg := configOf(world)
	cfg.PageBytes = maxBytes
	w := serve(t, cfg)
	var names []string
	pages := 0
	for cursor := ""; ; pages++ {
		_, body := w.get("/objects?limit=5000&include=body" + cursor)
		if len(body) > maxBytes+64<<10 {
			t.Errorf("page %d: got %d bytes", pages, len(body))
		}
		page := getJSON[objectList](w, "/objects?limit=5000&include=body"+cursor)
		if page.Total != 20 || page.Feeds != 1 {
			t.Errorf("page %d: got a total of %d and %d feeds", pages, page.Total, page.Feeds)
		}
		for _, item := range page.Items {
			names = append(names, item.Name)
			if len(item.Manifest) == 0 {
				t.Errorf("%s: got no manifest", item.Name)
			}
		}
		cursor = "&cursor=" + page.Cursor
		if page.Cursor == "" {
			break
		}
	}
	if len(names) != 20 || names[0] != "c000" || names[19] != "c019" || pages != 6 {
		t.Errorf("got %d pages: %q", pages, names)
	}
	if page := getJSON[objectList](w, "/objects?limit=5000"); len(page.Items) != 20 || page.Cursor != "" {
		t.Errorf("without manifests: got %d objects", len(page.Items))
	}
}

// TestStreamListsEveryPage checks that a stream sends all existing objects, although its pages
// are bounded.
func TestStreamListsEveryPage(t *testing.T) {
	cfg := configOf(largeWorld(t, 5))
	cfg.PageBytes = 150 << 10
	cfg.ReadLimiter = readlimit.New(readlimit.Config{Bytes: 600 << 10})
	s := openStream(t, cfg, client.Query{Kind: "configmaps", Manifests: true})
	s.expect("added prod/ConfigMap/n/c000", "added prod/ConfigMap/n/c001", "added prod/ConfigMap/n/c002", "added prod/ConfigMap/n/c003", "added prod/ConfigMap/n/c004", "ready")
}

// TestPageETagCoversManifests checks that the ETags of pages differ if only manifests differ.
func TestPageETagCoversManifests(t *testing.T) {
	world := largeWorld(t, 1)
	w := serve(t, configOf(world))
	first, _ := w.get("/objects?include=body")
	second, body := w.get("/objects?include=body", "If-None-Match", first.Header.Get("ETag"))
	if second.StatusCode != http.StatusNotModified || len(body) != 0 {
		t.Errorf("the same page: got %d with %d bytes", second.StatusCode, len(body))
	}
	world.PutBody("prod", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c000","namespace":"n"}}`, `{"other":true}`)
	if other, _ := w.get("/objects?include=body", "If-None-Match", first.Header.Get("ETag")); other.StatusCode != http.StatusOK {
		t.Errorf("another page: got %d, want %d", other.StatusCode, http.StatusOK)
	}
}

// TestReadLimitReturnsUnavailable takes all memory of the read limiter: requests then fail
// with 503, and succeed after memory was released.
func TestReadLimitReturnsUnavailable(t *testing.T) {
	cfg := configOf(largeWorld(t, 1))
	cfg.ReadLimiter = readlimit.New(readlimit.Config{Wait: time.Millisecond})
	cfg.StreamLimiter = readlimit.NewUniform(readlimit.Config{Bytes: 1 << 20, Wait: time.Millisecond})
	w := serve(t, cfg)
	freeBefore, free := readtest.Exhaust(cfg.ReadLimiter)
	_, freeStreams := readtest.Exhaust(cfg.StreamLimiter)
	for _, path := range []string{"/objects?include=body", "/objects?as=table&kind=configmaps", "/objects", "/objects/prod/configmaps/n/c000", "/changes"} {
		response, body := w.get(path)
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "5" || !strings.Contains(string(body), "have used all") {
			t.Errorf("%s: got %d %s, want %d and %q", path, response.StatusCode, body, http.StatusServiceUnavailable, "have used all")
		}
	}
	if response, body := w.get("/accounts"); response.StatusCode != http.StatusOK {
		t.Errorf("a request that needs no memory: got %d %s, want %d", response.StatusCode, body, http.StatusOK)
	}
	free()
	freeStreams()
	for _, path := range []string{"/objects?include=body", "/objects/prod/configmaps/n/c000"} {
		if response, body := w.get(path); response.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d %s, want %d", path, response.StatusCode, body, http.StatusOK)
		}
	}
	readtest.AwaitFree(t, cfg.ReadLimiter, freeBefore)
}
