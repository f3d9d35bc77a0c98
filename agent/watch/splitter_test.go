package watch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/vedette-io/vedette"
)

var podTypeMeta = typeMetaOf(vedette.Resource{Kind: vedette.Kind{Name: "Pod"}, Version: "v1"})

// splitList reads a list and returns its items.
func splitList(r io.Reader, limit int) (items []string, p page, err error) {
	s := newSplitter(r, new(bufferPool))
	s.max = limit
	defer s.close()
	p, err = s.list(podTypeMeta, func(raw []byte) error {
		items = append(items, string(raw))
		return nil
	})
	return items, p, err
}

func TestListIsReadInAnyOrder(t *testing.T) {
	for _, tt := range []struct {
		why, body string
		want      []string
		page      page
	}{
		{"built-in kinds: metadata first, and items without kind",
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"c","remainingItemCount":3},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`,
			[]string{`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"}}`},
			page{Kind: "PodList", Version: "7", Continue: "c"}},
		{"custom kinds: items first, and whole",
			` {"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Pod"}, {"kind":"Pod"} ],"kind":"PodList","metadata":{"continue":"","resourceVersion":"7"}}`,
			[]string{`{"apiVersion":"v1","kind":"Pod"}`, `{"kind":"Pod"}`}, page{Kind: "PodList", Version: "7"}},
		{"no items", `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":null}`, nil, page{Kind: "PodList", Version: "7"}},
		{"an empty list", `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[ ]}`, nil, page{Kind: "PodList", Version: "7"}},
		{"an item without members", `{"metadata":{"resourceVersion":"7"},"items":[{ }]}`, []string{`{"kind":"Pod","apiVersion":"v1"}`}, page{Version: "7"}},
		{"brackets and quotes inside of strings", `{"metadata":{"resourceVersion":"7"},"items":[{"kind":"]}\"[{\\"}]}`,
			[]string{`{"kind":"]}\"[{\\"}`}, page{Version: "7"}},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(tt.body), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.body))} {
			items, p, err := splitList(r, maxObjectBytes)
			if err != nil || strings.Join(items, "\n") != strings.Join(tt.want, "\n") || p != tt.page {
				t.Errorf("%s, %s: got %q, %+v, %v", tt.why, name, items, p, err)
			}
		}
	}
}

func TestMalformedListIsRejected(t *testing.T) {
	for _, tt := range []struct{ why, body, want string }{
		{"a page of HTML", "<html><body>Sign in</body></html>", "a page of HTML"},
		{"words", "upstream connect error", `"upstream connect err" where '{' was due`},
		{"another document", `{"kind":"APIVersions","versions":["v1"]}`, "without a resourceVersion: APIVersions"},
		{"an item that is no object", `{"metadata":{"resourceVersion":"7"},"items":[1]}`, "where an object was due"},
		{"items that are no array", `{"metadata":{"resourceVersion":"7"},"items":{}}`, "where an array was due"},
		{"brackets that do not match", `{"metadata":{"resourceVersion":"7"},"items":[{]]}`, "the end of"},
	} {
		_, _, err := splitList(strings.NewReader(tt.body), maxObjectBytes)
		if !errors.Is(err, errMalformed) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v", tt.why, err)
		}
	}
	whole := `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`
	for n := range len(whole) {
		if _, _, err := splitList(strings.NewReader(whole[:n]), maxObjectBytes); !errors.Is(unexpectedEOF(err), io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: got %v", n, err)
		}
	}
}

func TestTooLargeObjectIsSkipped(t *testing.T) {
	largeObject := `{"metadata":{"namespace":"ns","name":"huge","resourceVersion":"8"},"data":"` + strings.Repeat("x", 1<<20) + `"}`
	list := `{"metadata":{"resourceVersion":"7"},"items":[{"kind":"a"},` + largeObject + `,{"kind":"b"}]}`
	items, p, err := splitList(strings.NewReader(list), 100<<10)
	if err != nil || p.Version != "7" || strings.Join(items, ",") != `{"kind":"a"},,{"kind":"b"}` {
		t.Errorf("list: got %.100q, %+v, %v", items, p, err)
	}

	frames := `{"type":"ADDED","object":` + largeObject + "}\n" + `{"object":{"kind":"b"},"type":"DELETED"}` + "\n"
	s := newSplitter(strings.NewReader(frames), new(bufferPool))
	s.max = 100 << 10
	if _, err := s.frame(); err != errTooBig {
		t.Errorf("a big frame: got %v", err)
	}
	if m, _ := metaOf(embeddedObject(s.overflowPrefix)); m.Name != "huge" || m.Namespace != "ns" {
		t.Errorf("it was called %+v", m)
	}
	if f, err := s.frame(); err != nil || f.Type != "DELETED" || string(f.Object) != `{"kind":"b"}` {
		t.Errorf("the frame behind it: got %+v, %v", f, err)
	}
	if _, err := s.frame(); err != io.EOF {
		t.Errorf("the end: got %v", err)
	}
	if len(s.buf) > 256<<10 {
		t.Errorf("the buffer grew to %d bytes", len(s.buf))
	}
}

// TestIdleSplitterHoldsNoBuffer reads an event and then waits for one that does
// not come.
func TestIdleSplitterHoldsNoBuffer(t *testing.T) {
	r, w := io.Pipe()
	s := newSplitter(r, new(bufferPool))
	written := make(chan struct{})
	go func() {
		_, _ = w.Write([]byte(`{"type":"ADDED","object":{"a":"` + strings.Repeat("x", 50000) + `"}}` + "\n"))
		_, _ = w.Write([]byte(" ")) // taken only once the splitter reads on
		close(written)
	}()
	if _, err := s.frame(); err != nil {
		t.Fatal(err)
	}
	held := make(chan int, 1)
	go func() {
		<-written
		held <- 0
		w.Close()
	}()
	if _, err := s.frame(); err != io.EOF {
		t.Fatal(err)
	}
	<-held
	if s.buf != nil {
		t.Errorf("it holds %d bytes", len(s.buf))
	}
}

func TestOnlyMetadataFailsClosed(t *testing.T) {
	typeMeta := typeMetaOf(vedette.Resource{Kind: secretKind, Version: "v1"})
	for _, tt := range []struct{ why, raw, want string }{
		{"what was asked for", `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}`, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`},
		{"in another order, with space", ` {"metadata" : {"name":"a"}, "apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata"}`, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`},
		{"the Secret itself", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"},"data":{"p":"cGFzcw=="}}`, ""},
		{"a Secret without data", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`, ""},
		{"metadata and more", `{"kind":"PartialObjectMetadata","metadata":{"name":"a"},"stringData":{"p":"pass"}}`, ""},
		{"no metadata", `{"kind":"PartialObjectMetadata"}`, ""},
	} {
		got, err := onlyMetadata([]byte(tt.raw), typeMeta)
		if string(got) != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: got %s, %v", tt.why, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "pass") {
			t.Errorf("%s: the error repeats it: %v", tt.why, err)
		}
	}
}

// choppedReader reads n bytes at a time, n drawn from the input itself.
type choppedReader struct {
	r io.Reader
	n byte
}

func (c choppedReader) Read(b []byte) (int, error) { return c.r.Read(b[:min(len(b), int(c.n)+1)]) }

// FuzzFrames holds the splitter to encoding/json: where that reads the stream,
// the splitter finds the same extents; on all else it ends with an error.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}`+"\n"+`{"object":{},"type":"X"}`), byte(3))
	f.Add([]byte(`{"type":"BOOKMARK","object":{"a":"\\\"}","b":[1,-2.5e+3,true,null,{"c":[]}]}} `), byte(0))
	f.Add([]byte(`<html>`), byte(200))
	f.Add([]byte(`{"type":"A","object":{"a":"`+strings.Repeat("\\u0041", 3000)+`"}}`), byte(255))
	f.Fuzz(func(t *testing.T, stream []byte, n byte) {
		s := newSplitter(choppedReader{bytes.NewReader(stream), n}, new(bufferPool))
		defer s.close()
		want := json.NewDecoder(bytes.NewReader(stream))
		for valid := true; ; {
			got, err := s.frame()
			var w map[string]json.RawMessage
			if valid = valid && want.Decode(&w) == nil; valid {
				compareFrame(t, w, got, err)
			}
			if err != nil {
				return
			}
			_, _ = versionOf(got.Object)
			_, _ = onlyMetadata(bytes.Clone(got.Object), podTypeMeta)
		}
	})
}

// compareFrame checks frames whose members stand there once, under names
// without escapes, as all encoders write them.
func compareFrame(t *testing.T, want map[string]json.RawMessage, got frame, err error) {
	var kind string
	if json.Unmarshal(want["type"], &kind) != nil || len(want["object"]) == 0 || want["object"][0] != '{' || strings.ContainsAny(string(want["type"]), `\`) {
		return
	}
	if err != nil {
		t.Fatalf("got %v for %s %s", err, kind, want["object"])
	}
	var a, b any
	if json.Unmarshal(got.Object, &a) != nil || json.Unmarshal(want["object"], &b) != nil {
		t.Fatalf("got %q, want %q", got.Object, want["object"])
	}
}

// FuzzList holds lists to the same, and objects to their version.
func FuzzList(f *testing.F) {
	f.Add([]byte(`{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","resourceVersion":"5"}},{}]}`), byte(3))
	f.Add([]byte(`{"items":[{"kind":"Pod","x":"`+strings.Repeat("y", 20000)+`"}],"metadata":{"resourceVersion":"7","continue":"c"}}`), byte(255))
	f.Fuzz(func(t *testing.T, body []byte, n byte) {
		items, p, err := splitList(choppedReader{bytes.NewReader(body), n}, 16<<10)
		var want struct {
			Items    []json.RawMessage
			Metadata struct{ ResourceVersion string }
		}
		if err != nil || strings.Count(string(body), "items") != 1 || strings.Contains(string(body), `\`) || strings.Contains(strings.ToLower(string(body)), "items") != strings.Contains(string(body), "items") {
			return
		}
		if json.Unmarshal(body, &want) != nil || len(want.Items) != len(items) {
			return
		}
		for i, item := range items {
			if item != "" && json.Valid(want.Items[i]) && !json.Valid([]byte(item)) {
				t.Errorf("item %d became %q, of %q", i, item, want.Items[i])
			}
		}
		_ = p
	})
}

// BenchmarkFrames reads watch events of 7.6 KB and their versions.
func BenchmarkFrames(b *testing.B) {
	frame := `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"default","uid":"8b1b1e5c","resourceVersion":"12345"},"spec":{` +
		strings.Repeat(`"containers":[{"name":"app","image":"registry/app:1","env":[{"name":"A","value":"\"b\""}],"resources":{"limits":{"cpu":"1","memory":"128Mi"}}}],`, 52) + `"x":1}}}` + "\n"
	s := newSplitter(&repeatingReader{text: frame}, new(bufferPool))
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := s.frame()
		if err != nil {
			b.Fatal(err)
		}
		if v, err := versionOf(f.Object); err != nil || v != "12345" {
			b.Fatal(v, err)
		}
	}
}

// repeatingReader reads one text again and again.
type repeatingReader struct {
	text string
	at   int
}

func (e *repeatingReader) Read(b []byte) (int, error) {
	n := copy(b, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}
