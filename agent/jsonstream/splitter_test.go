package jsonstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

var podTypeMeta = []byte(`{"kind":"Pod","apiVersion":"v1",`)

// splitList reads a list and returns its items and its metadata.
func splitList(r io.Reader, limit int) (items []string, p ListMeta, err error) {
	s := NewSplitter(r, new(BufferPool), Options{})
	s.max = limit
	defer s.Close()
	p, err = s.List(podTypeMeta, func(raw []byte) error {
		items = append(items, string(raw))
		return nil
	})
	return items, p, err
}

func TestListIsReadInAnyOrder(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       []string
		page       ListMeta
	}{
		{"built-in kinds: metadata first, items without kind",
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"c","remainingItemCount":3},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}`,
			[]string{`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"b"}}`},
			ListMeta{Kind: "PodList", Version: "7", Continue: "c"}},
		{"custom kinds: items first, with kind",
			` {"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Pod"}, {"kind":"Pod"} ],"kind":"PodList","metadata":{"continue":"","resourceVersion":"7"}}`,
			[]string{`{"apiVersion":"v1","kind":"Pod"}`, `{"kind":"Pod"}`}, ListMeta{Kind: "PodList", Version: "7"}},
		{"no items", `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":null}`, nil, ListMeta{Kind: "PodList", Version: "7"}},
		{"an empty list", `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[ ]}`, nil, ListMeta{Kind: "PodList", Version: "7"}},
		{"an item without members", `{"metadata":{"resourceVersion":"7"},"items":[{ }]}`, []string{`{"kind":"Pod","apiVersion":"v1"}`}, ListMeta{Version: "7"}},
		{"brackets and quotes inside strings", `{"metadata":{"resourceVersion":"7"},"items":[{"kind":"]}\"[{\\"}]}`,
			[]string{`{"kind":"]}\"[{\\"}`}, ListMeta{Version: "7"}},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(tt.body), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.body))} {
			items, p, err := splitList(r, maxObjectBytes)
			if err != nil || strings.Join(items, "\n") != strings.Join(tt.want, "\n") || p != tt.page {
				t.Errorf("%s, %s: got %q, %+v, %v, want %q, %+v", tt.name, name, items, p, err, tt.want, tt.page)
			}
		}
	}
}

func TestMalformedListIsRejected(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"an HTML page", "<html><body>Sign in</body></html>", "an HTML page"},
		{"text", "upstream connect error", `found "upstream connect err", want '{'`},
		{"another document", `{"kind":"APIVersions","versions":["v1"]}`, "a list without items: APIVersions"},
		{"one object", `{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}`, "a list without items: Pod"},
		{"nothing", `{}`, "a list without items: no kind"},
		{"a list that cannot be watched", `{"kind":"PodList","metadata":{},"items":[]}`, "without a resourceVersion: PodList"},
		{"an item that is not an object", `{"metadata":{"resourceVersion":"7"},"items":[1]}`, "want an object"},
		{"items that are not an array", `{"metadata":{"resourceVersion":"7"},"items":{}}`, "want an array"},
		{"brackets that do not match", `{"metadata":{"resourceVersion":"7"},"items":[{]]}`, "the end of"},
	} {
		_, _, err := splitList(strings.NewReader(tt.body), maxObjectBytes)
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.want)
		}
	}
	whole := `{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`
	for n := range len(whole) {
		if _, _, err := splitList(strings.NewReader(whole[:n]), maxObjectBytes); !errors.Is(unexpectedEOF(err), io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: got error %v, want %v", n, err, io.ErrUnexpectedEOF)
		}
	}
}

func TestTooLargeObjectIsSkipped(t *testing.T) {
	largeObject := `{"metadata":{"namespace":"ns","name":"huge","resourceVersion":"8"},"data":"` + strings.Repeat("x", 1<<20) + `"}`
	list := `{"metadata":{"resourceVersion":"7"},"items":[{"kind":"a"},` + largeObject + `,{"kind":"b"}]}`
	items, p, err := splitList(strings.NewReader(list), 100<<10)
	if err != nil || p.Version != "7" || strings.Join(items, ",") != `{"kind":"a"},,{"kind":"b"}` {
		t.Errorf("list with a large item: got %.100q, %+v, %v, want two items and nil between them", items, p, err)
	}

	frames := `{"type":"ADDED","object":` + largeObject + "}\n" + `{"object":{"kind":"b"},"type":"DELETED"}` + "\n"
	s := NewSplitter(strings.NewReader(frames), new(BufferPool), Options{})
	s.max = 100 << 10
	if _, err := s.Frame(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("large frame: got error %v, want %v", err, ErrTooLarge)
	}
	if m, _ := ReadMeta(FrameObject(s.TakeOverflowPrefix())); m.Name != "huge" || m.Namespace != "ns" {
		t.Errorf("large frame: got metadata %+v, want ns/huge", m)
	}
	if f, err := s.Frame(); err != nil || f.Type != "DELETED" || string(f.Object) != `{"kind":"b"}` {
		t.Errorf("frame after the large one: got %+v, %v, want DELETED", f, err)
	}
	if _, err := s.Frame(); err != io.EOF {
		t.Errorf("end of stream: got error %v, want EOF", err)
	}
	if len(s.buf) > 256<<10 {
		t.Errorf("got a buffer of %d bytes, want at most %d", len(s.buf), 256<<10)
	}
}

// TestIdleSplitterHoldsNoBuffer reads an event and then waits for another one.
func TestIdleSplitterHoldsNoBuffer(t *testing.T) {
	r, w := io.Pipe()
	s := NewSplitter(r, new(BufferPool), Options{})
	written := make(chan struct{})
	go func() {
		_, _ = w.Write([]byte(`{"type":"ADDED","object":{"a":"` + strings.Repeat("x", 50000) + `"}}` + "\n"))
		_, _ = w.Write([]byte(" ")) // taken only once the splitter reads on
		close(written)
	}()
	if _, err := s.Frame(); err != nil {
		t.Fatal(err)
	}
	held := make(chan int, 1)
	go func() {
		<-written
		held <- 0
		w.Close()
	}()
	if _, err := s.Frame(); err != io.EOF {
		t.Fatal(err)
	}
	<-held
	if s.buf != nil {
		t.Errorf("got a buffer of %d bytes while idle, want none", len(s.buf))
	}
}

func TestOnlyMetadataFailsClosed(t *testing.T) {
	typeMeta := []byte(`{"kind":"Secret","apiVersion":"v1",`)
	for _, tt := range []struct{ name, raw, want string }{
		{"the requested form", `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}`, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`},
		{"another order, with white space", ` {"metadata" : {"name":"a"}, "apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata"}`, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`},
		{"the Secret itself", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"},"data":{"p":"cGFzcw=="}}`, ""},
		{"a Secret without data", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`, ""},
		{"metadata and more", `{"kind":"PartialObjectMetadata","metadata":{"name":"a"},"stringData":{"p":"pass"}}`, ""},
		{"no metadata", `{"kind":"PartialObjectMetadata"}`, ""},
	} {
		got, err := OnlyMetadata([]byte(tt.raw), typeMeta)
		if string(got) != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: got %s, %v, want %q", tt.name, got, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "pass") {
			t.Errorf("%s: the error contains secret data: %v", tt.name, err)
		}
	}
}

// choppedReader reads at most n+1 bytes at a time.
type choppedReader struct {
	r io.Reader
	n byte
}

func (c choppedReader) Read(b []byte) (int, error) { return c.r.Read(b[:min(len(b), int(c.n)+1)]) }

// FuzzFrames compares the Splitter with encoding/json. If encoding/json can read the
// stream, the Splitter must find the same extents. It must end any other stream with
// an error.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}`+"\n"+`{"object":{},"type":"X"}`), byte(3))
	f.Add([]byte(`{"type":"BOOKMARK","object":{"a":"\\\"}","b":[1,-2.5e+3,true,null,{"c":[]}]}} `), byte(0))
	f.Add([]byte(`<html>`), byte(200))
	f.Add([]byte(`{"type":"A","object":{"a":"`+strings.Repeat("\\u0041", 3000)+`"}}`), byte(255))
	f.Fuzz(func(t *testing.T, stream []byte, n byte) {
		s := NewSplitter(choppedReader{bytes.NewReader(stream), n}, new(BufferPool), Options{})
		defer s.Close()
		want := json.NewDecoder(bytes.NewReader(stream))
		for valid := true; ; {
			got, err := s.Frame()
			var w map[string]json.RawMessage
			valid = valid && want.Decode(&w) == nil
			if valid {
				compareFrame(t, w, got, err)
			}
			if err != nil {
				return
			}
			_, _ = ResourceVersion(got.Object)
			_, _ = OnlyMetadata(bytes.Clone(got.Object), podTypeMeta)
		}
	})
}

// compareFrame compares frames that have each member once, under a name without
// escapes, because all encoders write them so.
func compareFrame(t *testing.T, want map[string]json.RawMessage, got Frame, err error) {
	var kind string
	if json.Unmarshal(want["type"], &kind) != nil || len(want["object"]) == 0 || want["object"][0] != '{' || strings.ContainsAny(string(want["type"]), `\`) {
		return
	}
	if err != nil {
		t.Fatalf("frame %s %s: got error %v, want none", kind, want["object"], err)
	}
	var a, b any
	if json.Unmarshal(got.Object, &a) != nil || json.Unmarshal(want["object"], &b) != nil {
		t.Fatalf("got %q, want %q", got.Object, want["object"])
	}
}

// FuzzList compares the items of lists with those that encoding/json finds.
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
				t.Errorf("item %d: got %q, want %q", i, item, want.Items[i])
			}
		}
		_ = p
	})
}

// BenchmarkFrames reads watch events of 7.6 KB and their resourceVersions.
func BenchmarkFrames(b *testing.B) {
	frame := `{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"default","uid":"8b1b1e5c","resourceVersion":"12345"},"spec":{` +
		strings.Repeat(`"containers":[{"name":"app","image":"registry/app:1","env":[{"name":"A","value":"\"b\""}],"resources":{"limits":{"cpu":"1","memory":"128Mi"}}}],`, 52) + `"x":1}}}` + "\n"
	s := NewSplitter(&repeatingReader{text: frame}, new(BufferPool), Options{})
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := s.Frame()
		if err != nil {
			b.Fatal(err)
		}
		if v, err := ResourceVersion(f.Object); err != nil || v != "12345" {
			b.Fatal(v, err)
		}
	}
}

// repeatingReader returns the same text again and again.
type repeatingReader struct {
	text string
	at   int
}

func (e *repeatingReader) Read(b []byte) (int, error) {
	n := copy(b, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}
