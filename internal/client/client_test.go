package client

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestForeignResponsesAreRecognized(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		kind   vedette.ErrorKind
		want   string
	}{
		{"an error of ours", 404, `{"error":{"kind":"not_found","message":"there is no account x"}}`, vedette.NotFound, "there is no account x"},
		{"an internal error", 500, `{"error":{"kind":"internal","message":"internal error","id":"ABC"}}`, vedette.Unavailable, "see its log for id ABC"},
		{"a proxy", 502, "<html>Bad Gateway</html>", vedette.Unavailable, `answered "502 Bad Gateway", which is not the response of a Vedette server`},
		{"a JVM", 404, `{"timestamp":1,"status":404,"error":"Not Found"}`, vedette.Unavailable, "check the address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			c, err := New(strings.TrimPrefix(server.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Version(t.Context())
			if vedette.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a %s error with %q", err, tt.kind, tt.want)
			}
		})
	}
}

func TestEventsAreReadUntilTheCut(t *testing.T) {
	const text = ": a comment\n\nevent: added\ndata: {\"a\":\ndata: 1}\n\nid: 7\nevent:ready\ndata:{}\n\ndata: without a type\n\nevent: cut"
	var got []string
	err := readEvents(strings.NewReader(text), func(e Event) error {
		got = append(got, e.Type+" "+string(e.Data))
		return nil
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Join(got, "|") != `added {"a":1}|ready {}` {
		t.Errorf("got %q, %v", got, err)
	}
	stop := errors.New("enough")
	if err := readEvents(strings.NewReader(text), func(Event) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of the handler", err)
	}
}

func FuzzReadEvents(f *testing.F) {
	f.Add("event: a\ndata: {}\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		err := readEvents(strings.NewReader(text), func(e Event) error {
			if e.Type == "" || strings.ContainsAny(e.Type+string(e.Data), "\n") {
				t.Errorf("%q: got the event %q %q", text, e.Type, e.Data)
			}
			return nil
		})
		if err == nil {
			t.Error("got no error from a stream that ended")
		}
	})
}

// TestPortOfAgentsIsRecognized asks a port that speaks HTTP/2 at once, as the one for agents does.
func TestPortOfAgentsIsRecognized(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // ends with the listener
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = conn.Write([]byte("\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00@\x00\x00\x03\x00\x00\x01\x00\x00\x06\x00\x00@\x00"))
			_ = conn.Close()
		}
	}()
	c, err := New("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Version(t.Context()); err == nil || !strings.HasSuffix(err.Error(), ": it is not the port of the REST API, which is 7002 by default, or the server uses TLS: then begin its address with https://") {
		t.Errorf("got %v", err)
	}
}
