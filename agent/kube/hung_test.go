package kube_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/kube/kubetest"
)

const emptyList = `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`

// TestIdentifyAndDiscoverTimeOut checks that each request of identification and discovery
// fails if the response has no header, stops in the body, or never ends.
func TestIdentifyAndDiscoverTimeOut(t *testing.T) {
	answers := map[string]string{
		"/version": `{"gitVersion":"v1.36.3"}`, "/api/v1/namespaces/kube-system": `{"metadata":{"uid":"u"}}`, "/api/v1/namespaces": emptyList,
		"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/apis": `{"kind":"APIGroupList","groups":[{"name":"g","preferredVersion":{"version":"v1"}}]}`,
	}
	failures := map[string]func(http.ResponseWriter, *http.Request){
		"no header":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"half a body": func(w http.ResponseWriter, r *http.Request) { kubetest.Hang(w, r, `{"kind":"APIVersions",`) },
		"half an error": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			kubetest.Hang(w, r, `{"kind":"Status",`)
		},
		"no end of bytes": func(w http.ResponseWriter, r *http.Request) { writeForever(w, r, strings.Repeat(" ", 1<<16)) },
		"no end of items": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"kind":"List","metadata":{"resourceVersion":"1"},"items":[{}`)
			writeForever(w, r, strings.Repeat(`,{"metadata":{"name":"n"}}`, 1000))
		},
	}
	for path := range answers {
		for failure, respond := range failures {
			t.Run(strings.TrimPrefix(path, "/")+": "+failure, func(t *testing.T) {
				t.Parallel()
				server := kubetest.NewServer(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == path {
						respond(w, r)
						return
					}
					fmt.Fprint(w, answers[r.URL.Path])
				})
				c := kubetest.Connect(t, server, kube.Options{HeaderTimeout: 100 * time.Millisecond, ProgressTimeout: 100 * time.Millisecond})
				_, _, err := c.Identify(t.Context())
				if err == nil {
					_, err = c.Discover(t.Context())
				}
				if err == nil || vedette.KindOf(err) != vedette.Unavailable {
					t.Errorf("got error %v, want kind %s", err, vedette.Unavailable)
				}
			})
		}
	}
}

func writeForever(w http.ResponseWriter, r *http.Request, piece string) {
	for r.Context().Err() == nil {
		if _, err := fmt.Fprint(w, piece); err != nil {
			return
		}
	}
}
