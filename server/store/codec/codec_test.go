package codec

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func FuzzFoldBody(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"web","namespace":"n","uid":"u-1"},"x":"web"}`), "u-1", "web", "n")
	f.Add([]byte("\x01\x02"), "", "", "")
	f.Add([]byte(`""""`), `"`, `""`, "\x01")
	f.Fuzz(func(t *testing.T, body []byte, uid, name, namespace string) {
		o := vedette.Object{Key: vedette.Key{Name: name, Namespace: namespace}, UID: uid, Owner: vedette.Owner{UID: namespace + uid}, ResourceVersion: "12", Body: body}
		got, err := UnfoldBody(FoldBody(&o), &o)
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("got %q, %v, want %q", got, err, body)
		}
	})
}

func TestRepeatedValuesAreFolded(t *testing.T) {
	const uid = "a0000000-0000-4000-8000-00000000000b"
	o := vedette.Object{Key: vedette.Key{Name: "web", Namespace: "shop"}, UID: uid, ResourceVersion: "12", Owner: vedette.Owner{UID: "o"}}
	for name, c := range map[string]struct{ body, want string }{
		"values are replaced by their bytes":        {`{"uid":"` + uid + `","owner":"o","version":"12","name":"web","namespace":"shop"}`, "\x01" + `{"uid":"` + "\x01" + `","owner":"` + "\x02" + `","version":"` + "\x03" + `","name":"` + "\x04" + `","namespace":"` + "\x05" + `"}`},
		"a value inside a longer string is kept":    {`{"a":"web-1"}`, "\x01" + `{"a":"web-1"}`},
		"a value without quotes is kept":            {`{"a":12}`, "\x01" + `{"a":12}`},
		"a body with such a byte is not folded":     {`{"a":"` + "\x01" + `","name":"web"}`, "\x00" + `{"a":"` + "\x01" + `","name":"web"}`},
		"a body without strings is stored as it is": {`[1]`, "\x01[1]"},
		"no body": {"", ""},
	} {
		o.Body = []byte(c.body)
		if got := FoldBody(&o); string(got) != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

var headObject = vedette.Object{Key: vedette.Key{Name: "web-1"}, APIVersion: "v1", Created: 12, Owner: vedette.Owner{Kind: vedette.Kind{Name: "R"}, Name: "web", UID: "u"},
	Annotations: map[string]string{"a": "b"}, Summary: []byte("{}")}

func FuzzDecodeHead(f *testing.F) {
	f.Add(EncodeHead(&headObject))
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		decoded := vedette.Object{Key: headObject.Key}
		if DecodeHead(b, &decoded) != nil {
			return
		}
		again := vedette.Object{Key: headObject.Key}
		if err := DecodeHead(EncodeHead(&decoded), &again); err != nil || !reflect.DeepEqual(decoded, again) {
			t.Errorf("got %+v, %v, want %+v", again, err, decoded)
		}
	})
}

// TestStoredHeadsStayReadable keeps the format: rows that are stored must stay readable.
func TestStoredHeadsStayReadable(t *testing.T) {
	const want = "01" + "18" + "027631" + "00" + "0152" + "03" + "00" + "020075" + "01" + "01610162" + "027b7d"
	got := EncodeHead(&headObject)
	if hex.EncodeToString(got) != want {
		t.Errorf("got %x, want %s", got, want)
	}
	for n := range got {
		if err := DecodeHead(got[:n], &vedette.Object{Key: headObject.Key}); err == nil {
			t.Errorf("the first %d bytes of a head are decoded without an error", n)
		}
	}
}

func TestUIDsArePackedWithoutLoss(t *testing.T) {
	for uid, want := range map[string]string{
		"":                                     "",
		"a0000000-0000-4000-8000-00000000000b": "a000000000004000800000000000000b",
		"A0000000-0000-4000-8000-00000000000b": "00" + hex.EncodeToString([]byte("A0000000-0000-4000-8000-00000000000b")),
		"x":                                    "0078",
		"fifteen letters":                      "0000" + hex.EncodeToString([]byte("fifteen letters")),
		"sixteen letters!":                     "00" + hex.EncodeToString([]byte("sixteen letters!")),
	} {
		if got := PackUID(uid); hex.EncodeToString(got) != want {
			t.Errorf("%q: got %x, want %s", uid, got, want)
		}
	}
}

func FuzzPackUID(f *testing.F) {
	for _, uid := range []string{"", "a0000000-0000-4000-8000-00000000000b", "A0000000-0000-4000-8000-00000000000b", "fifteen letters", "sixteen letters!", "x"} {
		f.Add(uid)
	}
	f.Fuzz(func(t *testing.T, uid string) {
		if strings.HasPrefix(uid, "\x00") {
			return // the API server creates uids and never starts one with NUL
		}
		if got := UnpackUID(PackUID(uid)); got != uid {
			t.Errorf("got %q, want %q", got, uid)
		}
	})
}

func FuzzDecompress(f *testing.F) {
	d := NewDictionary(3, []byte(strings.Repeat("some text that repeats ", 20)))
	f.Add(compressOne(f, d, []byte(strings.Repeat("some text that repeats and more ", 9))))
	f.Add([]byte{0, 'a'})
	f.Fuzz(func(t *testing.T, column []byte) {
		id, frame, err := ParseColumn(column)
		if err != nil || id == Uncompressed {
			return
		}
		if out, err := d.Decompress(nil, frame); err == nil && len(out) > MaxSize {
			t.Errorf("got %d bytes, want at most %d", len(out), MaxSize)
		}
	})
}

func TestDictionaryIDsOfAnySize(t *testing.T) {
	for _, id := range []int64{0, 1, 126, 127, 16383, 1 << 31, 1 << 40} {
		d := NewDictionary(id, []byte(strings.Repeat("abcdefgh", 100)))
		text := []byte(strings.Repeat("abcdefghi", 50))
		got, frame, err := ParseColumn(compressOne(t, d, text))
		if err != nil || got != id {
			t.Fatalf("got dictionary %d, %v, want %d", got, err, id)
		}
		if out, err := d.Decompress(nil, frame); err != nil || !bytes.Equal(out, text) {
			t.Errorf("dictionary %d: got %q, %v, want %q", id, out, err, text)
		}
	}
}

func TestShortTextsAreNotCompressed(t *testing.T) {
	for text, want := range map[string]string{"": "", "{}": "\x00{}", strings.Repeat("a", minCompressSize-1): "\x00" + strings.Repeat("a", minCompressSize-1)} {
		if got := compressOne(t, NewDictionary(1, nil), []byte(text)); string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func compressOne(t testing.TB, d *Dictionary, text []byte) (column []byte) {
	t.Helper()
	if err := d.Compress(1, func(int) []byte { return text }, func(_ int, b []byte) { column = b }); err != nil {
		t.Fatal(err)
	}
	return column
}

func TestSampleMixesApplications(t *testing.T) {
	for name, c := range map[string]struct {
		applications, texts, size int // texts of each application, and bytes of each text
		full                      bool
		content                   int
	}{
		"few texts":                              {2, 3, 100, false, 600},
		"enough texts":                           {4, 8, 100, true, 3200},
		"enough bytes of different applications": {6, 1, sampleSize, true, dictionarySize},
		"only the beginning of a text":           {1, 1, 10 * sampleSize, false, sampleSize},
		"one application":                        {1, 100, 100, true, 33 * 100},
	} {
		s := NewSample()
		for n := range c.texts {
			for a := range c.applications {
				s.Add(fmt.Sprint("app-", a), bytes.Repeat([]byte{byte('a' + n%26)}, c.size))
			}
		}
		sum := 0
		for _, text := range append(s.texts, s.spare...) {
			sum += len(text)
		}
		if s.IsFull() != c.full || len(s.Content()) != c.content || s.Size() != sum {
			t.Errorf("%s: got full %v, a dictionary of %d bytes and size %d, want %v, %d and %d", name, s.IsFull(), len(s.Content()), s.Size(), c.full, c.content, sum)
		}
	}
}

func TestDifferentLabelsHaveDifferentHashes(t *testing.T) {
	sets := []map[string]string{nil, {"a": "b"}, {"a": ""}, {"ab": ""}, {"a": "b", "c": "d"}, {"a": "bc", "d": ""}}
	seen := map[int64]int{}
	for i, set := range sets {
		hash := HashLabels(set)
		if other, ok := seen[hash]; ok || hash == 0 {
			t.Errorf("got hash %d for set %d, want one that is not 0 and differs from that of set %d", hash, i, other)
		}
		seen[hash] = i
	}
}
