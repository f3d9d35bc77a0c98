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

// attack answers a request, or returns false where it is to be answered honestly.
type attack = func(w http.ResponseWriter, r *http.Request) bool

// on does something to the requests that are chosen.
func on(which func(*http.Request) bool, do func(w http.ResponseWriter, r *http.Request)) attack {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !which(r) {
			return false
		}
		do(w, r)
		return true
	}
}

func asksFor(path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.URL.Path == path }
}

// say answers with a text.
func say(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// sayAndHang answers with a text and no end.
func sayAndHang(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, text)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// repeat says a text, then another again and again, with pauses, as long as anybody
// listens.
func repeat(first string, then func(n int) string, pause time.Duration) func(http.ResponseWriter, *http.Request) {
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

func always(text string) func(int) string { return func(int) string { return text } }

// answer sends a status and a header.
func answer(code int, name, value, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(name, value)
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// apiServerAttacks are what API servers may do.
func apiServerAttacks() map[string]attack {
	const tick, megaTick = 20 * time.Millisecond, 200 * time.Millisecond
	mega := strings.Repeat("x", 1<<20)
	deep := strings.Repeat(`[`, 50_000) + strings.Repeat(`]`, 50_000)
	bad := "\xff\xfe\xc0"
	listHead := strings.TrimSuffix(listOf(""), "]}")
	all := map[string]attack{
		"hangs before the head":  on(isList, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		"hangs after the head":   on(isList, sayAndHang("")),
		"hangs mid-body":         on(isList, sayAndHang(`{"kind":"ConfigMapList","items":[{"metadata":{"name":"x`)),
		"trickles":               on(isList, repeat(`{"kind":"`, always("x"), tick)),
		"a watch of white space": on(isWatch, repeat("", always(" "), tick)),
		"a silent watch":         on(isWatch, sayAndHang("")),
		"never-ending list":      on(isList, repeat(listHead+configMap("x", 5, ""), func(n int) string { return "," + configMap(fmt.Sprint("x", n), 5, `,"data":{"a":"`+mega+`"}`) }, megaTick)),
		"never-ending object":    on(isList, repeat(listHead+`{"metadata":{"name":"x`, always(mega), megaTick)),
		"never-ending key":       on(isList, repeat(`{"`, always(mega), megaTick)),
		"giant objects":          on(isWatch, giants("MODIFIED", mega)),
		"giant deletions":        on(isWatch, giants("DELETED", mega)),
		"deep objects":           on(isList, say(listOf(configMap("x", 5, `,"data":`+deep)))),
		"deep deletions": on(isWatch, repeat("", func(n int) string {
			return event("ADDED", configMap("x", 6+2*n, `,"a":`+deep)) + event("DELETED", configMap("x", 7+2*n, `,"a":`+deep))
		}, megaTick)),
		"bad JSON":                   on(isList, say(listOf(`{"metadata":{"name":nope,,}}`))),
		"brackets that do not match": on(isList, say(`{"items":[{]}`)),
		"an error of a megabyte":     on(isWatch, say(event("ERROR", `{"kind":"Status","code":500,"message":"`+mega+`"}`))),
		"events of no type":          on(isWatch, repeat("", always(event(mega[:1000], `{}`)), tick)),
		"wrong kinds":                on(isList, say(`{"kind":"SecretList","metadata":{"resourceVersion":"5"},"items":[{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","uid":"u","resourceVersion":"1"},"data":{"p":"aHVudGVyMg=="}},7,"x",null]}`)),
		"endless continue tokens":    on(isList, endlessPages),
		"one continue token":         on(isList, say(`{"metadata":{"resourceVersion":"5","continue":"again"},"items":[]}`)),
		"a token of a megabyte":      on(isList, say(`{"metadata":{"resourceVersion":"5","continue":"`+mega+`"},"items":[]}`)),
		"one version for all":        on(isWatch, repeat("", always(event("MODIFIED", configMap("x", 6, ""))+event("BOOKMARK", configMap("x", 6, ""))), tick)),
		"versions that go back":      on(isWatch, repeat("", always(event("MODIFIED", configMap("x", 9, ""))+event("BOOKMARK", configMap("x", 6, ""))), tick)),
		"410 for ever":               on(isWatch, say(event("ERROR", `{"kind":"Status","code":410,"reason":"Expired"}`))),
		"410 for lists too":          on(asksFor(configMaps), answer(410, "X", "y", `{"kind":"Status","code":410,"reason":"Expired"}`)),
		"429 and a year":             on(asksFor(configMaps), answer(429, "Retry-After", "31536000", "")),
		"429 and more than fits":     on(asksFor("/version"), answer(429, "Retry-After", "9223372036854775807", "")),
		"redirects":                  on(isList, answer(302, "Location", configMaps, "")),
		"less than Content-Length":   on(isList, answer(200, "Content-Length", "1000000", "{")),
		"a bomb":                     on(isList, answer(200, "Content-Encoding", "gzip", bomb())),
		"a page of HTML":             on(asksFor("/api"), answer(200, "Content-Type", "text/html", "<html>"+mega)),
		"not UTF-8 in objects":       on(isList, say(listOf(strings.ReplaceAll(configMap("BAD", 5, `,"data":{"BAD":"BAD"}`), "BAD", bad)))),
		"not UTF-8 in changes": on(isWatch, repeat("", func(n int) string {
			return strings.ReplaceAll(event("MODIFIED", configMap("BAD", 6+n, ""))+event("DELETED", configMap("BAD", 6+n, "")), "BAD", bad)
		}, tick)),
		"not UTF-8 in versions":       on(isWatch, repeat("", always(event("BOOKMARK", `{"metadata":{"resourceVersion":"`+bad+`"}}`)), tick)),
		"not UTF-8 in a list's mark":  on(isList, say(`{"metadata":{"resourceVersion":"`+bad+`"},"items":[]}`)),
		"not UTF-8 in errors":         on(isList, answer(500, "X", "y", `{"kind":"Status","code":500,"message":"`+bad+`","reason":"`+bad+`"}`)),
		"not UTF-8 in who it is":      on(asksFor("/version"), say(`{"gitVersion":"`+bad+`"}`)),
		"not UTF-8 in refusals":       on(asksFor("/version"), answer(407, "X", "y", bad)),
		"a version of a megabyte":     on(asksFor("/version"), say(`{"gitVersion":"`+mega+`"}`)),
		"namespaces without end":      on(asksFor("/api/v1/namespaces"), repeat(`{"metadata":{"resourceVersion":"1"},"items":[{}`, func(n int) string { return fmt.Sprintf(`,{"metadata":{"name":"n%d%s"}}`, n, mega[:200]) }, 0)),
		"kinds without end":           on(asksFor("/apis"), manyKinds(20_000)),
		"kinds enough for a crowd":    on(asksFor("/apis"), manyKinds(300)),
		"discovery that hangs":        on(asksFor("/apis"), sayAndHang(`{"kind":"APIGroupList","groups":[`)),
		"groups that answer nonsense": on(func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/apis") }, nonsenseGroups),
		"an identity that hangs":      on(asksFor("/api/v1/namespaces/kube-system"), sayAndHang(`{`)),
		"an error that does not end": on(isList, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			repeat("", always(mega), megaTick)(w, r)
		}),
		"connections that break": on(isWatch, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, " "); panic(http.ErrAbortHandler) }),
		"objects without names":  on(isWatch, repeat("", always(event("MODIFIED", `{"metadata":{"resourceVersion":"7"}}`)+event("DELETED", `{"metadata":{"resourceVersion":"7"}}`)), tick)),
	}
	return all
}

// giants are events of 17 MiB each.
func giants(kind, mega string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		for n := 6; r.Context().Err() == nil; n++ {
			head, _, _ := strings.Cut(event(kind, configMap("x", n, `,"data":{"a":"?"}`)), "?")
			fmt.Fprint(w, head)
			for range 17 {
				if _, err := io.WriteString(w, mega); err != nil {
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

// endlessPages is a list that always has another page.
func endlessPages(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, `{"metadata":{"resourceVersion":"5","continue":"x%d"},"items":[]}`, time.Now().UnixNano())
}

// bomb is 64 MiB of spaces in gzip, which nobody asked for.
func bomb() string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	for range 64 {
		_, _ = w.Write(spaces) // to memory
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

// nonsenseGroups names groups, which all answer what nobody asked for.
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
