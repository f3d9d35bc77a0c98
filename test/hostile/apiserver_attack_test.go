package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// attack answers a request, or returns false if the request is to be answered honestly.
type attack = func(w http.ResponseWriter, r *http.Request) bool

// onRequest returns an attack that calls do for the requests that match.
func onRequest(matches func(*http.Request) bool, do func(w http.ResponseWriter, r *http.Request)) attack {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !matches(r) {
			return false
		}
		do(w, r)
		return true
	}
}

func requestsPath(path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.URL.Path == path }
}

// respond responds with a text.
func respond(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// respondAndHang responds with a text and never ends the response.
func respondAndHang(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, text)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// respondRepeatedly responds with a text, and then with other texts and pauses until the client
// disconnects.
func respondRepeatedly(first string, then func(n int) string, pause time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, first)
		for n := 0; ; n++ {
			if _, err := io.WriteString(w, then(n)); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
		}
	}
}

func constant(text string) func(int) string { return func(int) string { return text } }

// respondWith responds with a status and a header.
func respondWith(code int, name, value, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(name, value)
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// apiServerAttacks returns the attacks of hostile API servers.
func apiServerAttacks() map[string]attack {
	const tick, megaTick = 20 * time.Millisecond, 200 * time.Millisecond
	megabyte := strings.Repeat("x", 1<<20)
	deeplyNested := strings.Repeat(`[`, 50_000) + strings.Repeat(`]`, 50_000)
	invalidUTF8 := "\xff\xfe\xc0"
	listHead := strings.TrimSuffix(listOf(""), "]}")
	all := map[string]attack{
		"hangs before the head":  onRequest(isList, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		"hangs after the head":   onRequest(isList, respondAndHang("")),
		"hangs mid-body":         onRequest(isList, respondAndHang(`{"kind":"ConfigMapList","items":[{"metadata":{"name":"x`)),
		"trickles":               onRequest(isList, respondRepeatedly(`{"kind":"`, constant("x"), tick)),
		"a watch of white space": onRequest(isWatch, respondRepeatedly("", constant(" "), tick)),
		"a silent watch":         onRequest(isWatch, respondAndHang("")),
		"never-ending list":      onRequest(isList, respondRepeatedly(listHead+configMap("x", 5, ""), func(n int) string { return "," + configMap(fmt.Sprint("x", n), 5, `,"data":{"a":"`+megabyte+`"}`) }, megaTick)),
		"never-ending object":    onRequest(isList, respondRepeatedly(listHead+`{"metadata":{"name":"x`, constant(megabyte), megaTick)),
		"never-ending key":       onRequest(isList, respondRepeatedly(`{"`, constant(megabyte), megaTick)),
		"giant objects":          onRequest(isWatch, giantObjects("MODIFIED", megabyte)),
		"giant deletions":        onRequest(isWatch, giantObjects("DELETED", megabyte)),
		"deep objects":           onRequest(isList, respond(listOf(configMap("x", 5, `,"data":`+deeplyNested)))),
		"deep deletions": onRequest(isWatch, respondRepeatedly("", func(n int) string {
			return event("ADDED", configMap("x", 6+2*n, `,"a":`+deeplyNested)) + event("DELETED", configMap("x", 7+2*n, `,"a":`+deeplyNested))
		}, megaTick)),
		"bad JSON":                   onRequest(isList, respond(listOf(`{"metadata":{"name":nope,,}}`))),
		"brackets that do not match": onRequest(isList, respond(`{"items":[{]}`)),
		"an error of a megabyte":     onRequest(isWatch, respond(event("ERROR", `{"kind":"Status","code":500,"message":"`+megabyte+`"}`))),
		"events of unknown type":     onRequest(isWatch, respondRepeatedly("", constant(event(megabyte[:1000], `{}`)), tick)),
		"wrong kinds":                onRequest(isList, respond(`{"kind":"SecretList","metadata":{"resourceVersion":"5"},"items":[{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","uid":"u","resourceVersion":"1"},"data":{"p":"aHVudGVyMg=="}},7,"x",null]}`)),
		"endless continue tokens":    onRequest(isList, endlessPages),
		"one continue token":         onRequest(isList, respond(`{"metadata":{"resourceVersion":"5","continue":"again"},"items":[]}`)),
		"a token of a megabyte":      onRequest(isList, respond(`{"metadata":{"resourceVersion":"5","continue":"`+megabyte+`"},"items":[]}`)),
		"one version for all":        onRequest(isWatch, respondRepeatedly("", constant(event("MODIFIED", configMap("x", 6, ""))+event("BOOKMARK", configMap("x", 6, ""))), tick)),
		"versions that go back":      onRequest(isWatch, respondRepeatedly("", constant(event("MODIFIED", configMap("x", 9, ""))+event("BOOKMARK", configMap("x", 6, ""))), tick)),
		"410 forever":                onRequest(isWatch, respond(event("ERROR", `{"kind":"Status","code":410,"reason":"Expired"}`))),
		"410 for lists too":          onRequest(requestsPath(configMaps), respondWith(410, "X", "y", `{"kind":"Status","code":410,"reason":"Expired"}`)),
		"429 and a year":             onRequest(requestsPath(configMaps), respondWith(429, "Retry-After", "31536000", "")),
		"429 and more than fits":     onRequest(requestsPath("/version"), respondWith(429, "Retry-After", "9223372036854775807", "")),
		"redirects":                  onRequest(isList, respondWith(302, "Location", configMaps, "")),
		"less than Content-Length":   onRequest(isList, respondWith(200, "Content-Length", "1000000", "{")),
		"a bomb":                     onRequest(isList, respondWith(200, "Content-Encoding", "gzip", gzipBomb())),
		"a page of HTML":             onRequest(requestsPath("/api"), respondWith(200, "Content-Type", "text/html", "<html>"+megabyte)),
		"not UTF-8 in objects":       onRequest(isList, respond(listOf(strings.ReplaceAll(configMap("BAD", 5, `,"data":{"BAD":"BAD"}`), "BAD", invalidUTF8)))),
		"not UTF-8 in changes": onRequest(isWatch, respondRepeatedly("", func(n int) string {
			return strings.ReplaceAll(event("MODIFIED", configMap("BAD", 6+n, ""))+event("DELETED", configMap("BAD", 6+n, "")), "BAD", invalidUTF8)
		}, tick)),
		"not UTF-8 in versions":       onRequest(isWatch, respondRepeatedly("", constant(event("BOOKMARK", `{"metadata":{"resourceVersion":"`+invalidUTF8+`"}}`)), tick)),
		"not UTF-8 in a list's mark":  onRequest(isList, respond(`{"metadata":{"resourceVersion":"`+invalidUTF8+`"},"items":[]}`)),
		"not UTF-8 in errors":         onRequest(isList, respondWith(500, "X", "y", `{"kind":"Status","code":500,"message":"`+invalidUTF8+`","reason":"`+invalidUTF8+`"}`)),
		"not UTF-8 in the version":    onRequest(requestsPath("/version"), respond(`{"gitVersion":"`+invalidUTF8+`"}`)),
		"not UTF-8 in refusals":       onRequest(requestsPath("/version"), respondWith(407, "X", "y", invalidUTF8)),
		"a version of a megabyte":     onRequest(requestsPath("/version"), respond(`{"gitVersion":"`+megabyte+`"}`)),
		"namespaces without end":      onRequest(requestsPath("/api/v1/namespaces"), respondRepeatedly(`{"metadata":{"resourceVersion":"1"},"items":[{}`, func(n int) string { return fmt.Sprintf(`,{"metadata":{"name":"n%d%s"}}`, n, megabyte[:200]) }, 0)),
		"kinds without end":           onRequest(requestsPath("/apis"), manyKinds(20_000)),
		"many kinds":                  onRequest(requestsPath("/apis"), manyKinds(300)),
		"discovery that hangs":        onRequest(requestsPath("/apis"), respondAndHang(`{"kind":"APIGroupList","groups":[`)),
		"groups that answer nonsense": onRequest(func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/apis") }, nonsenseGroups),
		"an identity that hangs":      onRequest(requestsPath("/api/v1/namespaces/kube-system"), respondAndHang(`{`)),
		"an endless error": onRequest(isList, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			respondRepeatedly("", constant(megabyte), megaTick)(w, r)
		}),
		"connections that break": onRequest(isWatch, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, " "); panic(http.ErrAbortHandler) }),
		"objects without names":  onRequest(isWatch, respondRepeatedly("", constant(event("MODIFIED", `{"metadata":{"resourceVersion":"7"}}`)+event("DELETED", `{"metadata":{"resourceVersion":"7"}}`)), tick)),
	}
	return all
}

// giantObjects sends events of 17 MiB each.
func giantObjects(kind, megabyte string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		for n := 6; r.Context().Err() == nil; n++ {
			head, _, _ := strings.Cut(event(kind, configMap("x", n, `,"data":{"a":"?"}`)), "?")
			fmt.Fprint(w, head)
			for range 17 {
				if _, err := io.WriteString(w, megabyte); err != nil {
					return
				}
			}
			fmt.Fprint(w, "\"}}}\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
			}
		}
	}
}

// endlessPages responds with a page of a list that always has another page.
func endlessPages(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, `{"metadata":{"resourceVersion":"5","continue":"x%d"},"items":[]}`, time.Now().UnixNano())
}

// gzipBomb returns 64 MiB of spaces compressed with gzip, which the client did not request.
func gzipBomb() string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	for range 64 {
		_, _ = w.Write(spaces) // writes to memory
	}
	_ = w.Close()
	return b.String()
}

func manyKinds(n int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","metadata":{},"items":[`)
		for i := range n {
			if i > 0 {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, `{"metadata":{"name":"g%d"},"versions":[{"version":"v1","freshness":"Current","resources":[{"resource":"things","responseKind":{"kind":"Thing"},"verbs":["list","watch"]}]}]}`, i)
		}
		fmt.Fprint(w, `]}`)
	}
}

// nonsenseGroups lists API groups whose discovery is nonsense.
func nonsenseGroups(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/apis" {
		fmt.Fprint(w, `{"kind":"Pod"}`)
		return
	}
	fmt.Fprint(w, `{"kind":"APIGroupList","groups":[`)
	for i := range 300 {
		fmt.Fprintf(w, `{"name":"g%d","preferredVersion":{"version":"v1"},"versions":[{"version":"v1"}]},`, i)
	}
	fmt.Fprint(w, `{}]}`)
}
