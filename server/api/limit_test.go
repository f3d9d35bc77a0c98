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

// largeWorld is a world of one account with ConfigMaps of 100 KiB that compression
// makes no smaller.
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

// TestPageBytesLimit reads large objects by pages, as the command line does: each
// answer is bounded in bytes, and together they hold everything.
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
			t.Errorf("page %d has %d bytes", pages, len(body))
		}
		page := getJSON[objectList](w, "/objects?limit=5000&include=body"+cursor)
		if page.Total != 20 || len(page.Freshness) != 1 {
			t.Errorf("page %d: a total of %d, %d feeds", pages, page.Total, len(page.Freshness))
		}
		for _, item := range page.Items {
			names = append(names, item.Name)
			if len(item.Manifest) == 0 {
				t.Errorf("%s has no manifest", item.Name)
			}
		}
		if cursor = "&cursor=" + page.Cursor; page.Cursor == "" {
			break
		}
	}
	if len(names) != 20 || names[0] != "c000" || names[19] != "c019" || pages != 6 {
		t.Errorf("%d pages: %q", pages, names)
	}
	if page := getJSON[objectList](w, "/objects?limit=5000"); len(page.Items) != 20 || page.Cursor != "" {
		t.Errorf("without manifests: %d objects", len(page.Items))
	}
}

// TestStreamListsEveryPage holds that a stream tells of all that is there first, though
// its pages are bounded too.
func TestStreamListsEveryPage(t *testing.T) {
	cfg := configOf(largeWorld(t, 5))
	cfg.PageBytes = 150 << 10
	cfg.ReadLimiter = readlimit.New(readlimit.Config{Bytes: 600 << 10})
	s := openStream(t, cfg, client.Query{Kind: "configmaps", Manifests: true})
	s.expect("added prod/ConfigMap/n/c000", "added prod/ConfigMap/n/c001", "added prod/ConfigMap/n/c002", "added prod/ConfigMap/n/c003", "added prod/ConfigMap/n/c004", "ready")
}

// TestPageETagCoversManifests holds that a page's tag tells apart what differs in manifests only.
func TestPageETagCoversManifests(t *testing.T) {
	world := largeWorld(t, 1)
	w := serve(t, configOf(world))
	first, _ := w.get("/objects?include=body")
	second, body := w.get("/objects?include=body", "If-None-Match", first.Header.Get("ETag"))
	if second.StatusCode != http.StatusNotModified || len(body) != 0 {
		t.Errorf("the same page: %d with %d bytes", second.StatusCode, len(body))
	}
	world.PutBody("prod", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c000","namespace":"n"}}`, `{"other":true}`)
	if other, _ := w.get("/objects?include=body", "If-None-Match", first.Header.Get("ETag")); other.StatusCode != http.StatusOK {
		t.Errorf("another page: %d", other.StatusCode)
	}
}

// TestReadLimitReturnsUnavailable takes all memory of readers: whoever comes then is
// told so, and served when there is some again.
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
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
	if response, body := w.get("/accounts"); response.StatusCode != http.StatusOK {
		t.Errorf("what takes little: %d %s", response.StatusCode, body)
	}
	free()
	freeStreams()
	for _, path := range []string{"/objects?include=body", "/objects/prod/configmaps/n/c000"} {
		if response, body := w.get(path); response.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
	if freeAfter, _ := readtest.Exhaust(cfg.ReadLimiter); freeAfter != freeBefore {
		t.Errorf("%d bytes were free before, and %d since: an answer has kept memory", freeBefore, freeAfter)
	}
}
