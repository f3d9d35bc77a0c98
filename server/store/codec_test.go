package store

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func FuzzFold(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"web","namespace":"n","uid":"u-1"},"x":"web"}`), "u-1", "web", "n")
	f.Add([]byte("\x01\x02"), "", "", "")
	f.Add([]byte(`""""`), `"`, `""`, "\x01")
	f.Fuzz(func(t *testing.T, body []byte, uid, name, namespace string) {
		o := vedette.Object{Key: vedette.Key{Name: name, Namespace: namespace}, UID: uid, Owner: vedette.Owner{UID: namespace + uid}, ResourceVersion: "12", Body: body}
		got, err := unfold(fold(&o), &o)
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%q became %q, %v", body, got, err)
		}
	})
}

func FuzzHead(f *testing.F) {
	o := vedette.Object{Key: vedette.Key{Name: "web-1"}, APIVersion: "v1", Created: 12, Owner: vedette.Owner{Kind: vedette.Kind{Name: "R"}, Name: "web", UID: "u"},
		Annotations: map[string]string{"a": "b"}, Summary: []byte("{}")}
	f.Add(appendHead(nil, &o))
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		read := vedette.Object{Key: o.Key}
		if parseHead(b, &read) != nil {
			return
		}
		reparsed := vedette.Object{Key: o.Key}
		if err := parseHead(appendHead(nil, &read), &reparsed); err != nil || !reflect.DeepEqual(read, reparsed) {
			t.Errorf("%+v became %+v, %v", read, reparsed, err)
		}
	})
}

func FuzzUID(f *testing.F) {
	for _, uid := range []string{"", "a0000000-0000-4000-8000-00000000000b", "A0000000-0000-4000-8000-00000000000b", "fifteen letters", "sixteen letters!", "x"} {
		f.Add(uid)
	}
	f.Fuzz(func(t *testing.T, uid string) {
		if strings.HasPrefix(uid, "\x00") {
			return // Kubernetes has none such: a uid is a field of JSON that it makes itself
		}
		if got := unpackUID(packUID(uid)); got != uid {
			t.Errorf("%q became %q", uid, got)
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add(position{account: "a", kind: vedette.Kind{Name: "Pod"}, namespace: "n", name: "x"}.String())
	f.Add("WyJhIl0")
	f.Fuzz(func(t *testing.T, cursor string) {
		pos, err := parseCursor(cursor)
		if err != nil {
			if vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%q: %v", cursor, err)
			}
			return
		}
		if reparsed, err := parseCursor(pos.String()); err != nil || reparsed != pos {
			t.Errorf("%+v became %+v, %v", pos, reparsed, err)
		}
	})
}

func FuzzDecompress(f *testing.F) {
	d := &dictionary{id: 3, bytes: []byte(strings.Repeat("some text that repeats ", 20))}
	f.Add(compressOne(f, d, []byte(strings.Repeat("some text that repeats and more ", 9))))
	f.Add([]byte{0, 'a'})
	f.Fuzz(func(t *testing.T, column []byte) {
		id, frame, err := parseColumn(column)
		if err != nil || id < 0 {
			return
		}
		if out, err := d.decompress(nil, frame); err == nil && len(out) > maxBody {
			t.Errorf("expanded to %d bytes", len(out))
		}
	})
}

func TestDictionaryIDsOfAnySize(t *testing.T) {
	for _, id := range []int64{0, 1, 126, 127, 16383, 1 << 31, 1 << 40} {
		d := &dictionary{id: id, bytes: []byte(strings.Repeat("abcdefgh", 100))}
		text := []byte(strings.Repeat("abcdefghi", 50))
		got, frame, err := parseColumn(compressOne(t, d, text))
		if err != nil || got != id {
			t.Fatalf("dictionary %d came back as %d, %v", id, got, err)
		}
		if out, err := d.decompress(nil, frame); err != nil || !bytes.Equal(out, text) {
			t.Errorf("dictionary %d: %v", id, err)
		}
	}
}

func TestBindNumbersParameters(t *testing.T) {
	d := postgresDialect()
	if got := d.bind("a = ? AND b IN (?,?)"); got != "a = $1 AND b IN ($2,$3)" {
		t.Error(got)
	}
}

func compressOne(t testing.TB, d *dictionary, text []byte) (column []byte) {
	t.Helper()
	if err := d.compress(1, func(int) []byte { return text }, func(_ int, b []byte) { column = b }); err != nil {
		t.Fatal(err)
	}
	return column
}
