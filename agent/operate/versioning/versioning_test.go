package versioning

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/vedette-io/vedette/agent/operate/manifest"
)

// FuzzSameContent checks that a manifest is compared with a stored one as their canonical forms would be.
func FuzzSameContent(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"eA==","b":null}}`, `{"kind":"Secret","apiVersion":"v1","data":{"b":null,"a":"e\u0041=="}}`},
		{`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"s"},"n":[1,2.5,1e3,true,{}]}`, `{"apiVersion":"v1","kind":"Thing","n":[1.0,25e-1,1000,true,{}],"metadata":7}`},
		{`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"s"},"n":9007199254740993}`, `{"apiVersion":"v1","kind":"Thing","n":9007199254740992}`},
		{`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"s"},"n":[]}`, `{"apiVersion":"v1","kind":"Thing","n":null}`},
		{`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"s"}}`, `[]`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, raw, written []byte) {
		m, err := manifest.Parse(raw)
		if err != nil || bytes.Contains(raw, []byte("-0")) || bytes.Contains(written, []byte("-0")) { // 0, in the eyes of one of the two
			return
		}
		want := false
		var other any
		if kjson.Unmarshal(written, &other) == nil {
			o, is := other.(object)
			want = is && bytes.Equal(canonicalContent(m), canonicalContent(manifest.Manifest{Object: o}))
		}
		if got := sameContent(m.Object, written); got != want {
			t.Errorf("%s and %s: got same %v", raw, written, got)
		}
		if !sameContent(m.Object, m.Encode()) {
			t.Errorf("%s: got different from itself", raw)
		}
	})
}

// FuzzParseCandidate checks that no metadata causes a panic, that it is cleared, and that a digest is read
// as it is written.
func FuzzParseCandidate(f *testing.F) {
	const annotations = `"artifact.spinnaker.io/type":"kubernetes/secret","artifact.spinnaker.io/name":"s","artifact.spinnaker.io/location":"n"`
	f.Add([]byte(`{"metadata":{"name":"s-v003","annotations":{` + annotations + `,"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":1}"}}}`))
	f.Add([]byte(`{"metadata":{"name":"s","creationTimestamp":"2025-10-01T10:00:00Z","annotations":{` + annotations + `,"artifact.spinnaker.io/version":"v0",
		"vedette.io/content":"1.AAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}}`))
	f.Add([]byte(`{"metadata":{"name":"s-v99999999999999","annotations":{"artifact.spinnaker.io/version":"v-1","x":7}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := Series{secretKind, "n", "s"}
		x, is, err := s.ParseCandidate(raw)
		if len(bytes.Trim(raw, "\x00")) > 0 {
			t.Errorf("not cleared: %q", raw)
		}
		if (err != nil || !is) && (x.lastApplied != nil || x.digest != nil) || x.number < -1 {
			t.Errorf("got %+v, %v, %v", x, is, err)
		}
		if d, ok := parseDigest(x.digest); ok {
			again, ok := parseDigest([]byte(d.encode()))
			if !ok || again.rounds != d.rounds || !again.matches(d.tag) || d.rounds > maxRounds {
				t.Errorf("%s: got %+v", d.encode(), again)
			}
		}
	})
}

func TestOnlySameContentSharesADigest(t *testing.T) {
	of := func(rounds int, salt, raw string) digest {
		m, err := manifest.Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		d := digest{rounds: rounds, salt: []byte(salt)}
		d.tag = d.sum(m)
		return d
	}
	const salt, other = "0123456789abcdef", "0123456789abcdeF"
	one := of(3, salt, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"eA==","y":"eQ=="}}`)
	for _, tt := range []struct {
		name string
		d    digest
		want bool
	}{
		{"another name and order", of(3, salt, `{"data":{"y":"eQ==","x":"eA=="},"metadata":{"name":"b","labels":{}},"kind":"Secret","apiVersion":"v1"}`), true},
		{"another value", of(3, salt, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"eA==","y":"eA=="}}`), false},
		{"another salt", of(3, other, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"eA==","y":"eQ=="}}`), false},
		{"other rounds", of(4, salt, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"eA==","y":"eQ=="}}`), false},
	} {
		if one.matches(tt.d.tag) != tt.want {
			t.Errorf("%s: got equal %v", tt.name, !tt.want)
		}
	}
	tag := strings.Repeat("A", 43)
	for _, bad := range []string{"", "1", "1..", "0.AAAAAAAAAAAAAAAAAAAAAA." + tag, "1000001.AAAAAAAAAAAAAAAAAAAAAA." + tag, "x.AAAAAAAAAAAAAAAAAAAAAA." + tag,
		"1.AAAA." + tag, "1.AAAAAAAAAAAAAAAAAAAAAA.AAAA", "1.AAAAAAAAAAAAAAAAAAAAAA." + tag + ".", "1.!AAAAAAAAAAAAAAAAAAAAA." + tag} {
		if _, ok := parseDigest([]byte(bad)); ok {
			t.Errorf("%q: got a digest, want none", bad)
		}
	}
}

// TestSaltCacheIsBounded checks that salts are returned, and that the number of salts is limited.
func TestSaltCacheIsBounded(t *testing.T) {
	var s SaltCache
	content := sensitiveBytes("1.AAAAAAAAAAAAAAAAAAAAAA." + strings.Repeat("A", 43))
	for i := range 3 * maxSalts {
		name := Series{Name: strconv.Itoa(i)}
		s.put(name, content)
		if s.get(name) == nil || len(s.bySeries) > maxSalts {
			t.Fatalf("after %d: got %d salts", i, len(s.bySeries))
		}
	}
	s.put(Series{Name: "bad"}, sensitiveBytes("x"))
	if s.get(Series{Name: "bad"}) != nil {
		t.Error("invalid digest: got a salt")
	}
}

// BenchmarkDigest measures one comparison with a Secret.
func BenchmarkDigest(b *testing.B) {
	m, err := manifest.Parse([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"eA=="}}`))
	if err != nil {
		b.Fatal(err)
	}
	d := digest{rounds: secretRounds, salt: make([]byte, saltBytes)}
	for b.Loop() {
		d.sum(m)
	}
}
