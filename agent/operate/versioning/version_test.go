package versioning

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

func TestSameContentReusesItsVersion(t *testing.T) {
	m, err := manifest.Parse([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	applied := []byte(`{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"1"},"metadata":{"name":"c-v004"}}`)
	live := map[string]string{"c-v002": `{"data":{"a":"1"}}`, "c-v003": `{"data":{"a":"2"}}`} // the others are gone
	for _, tt := range []struct {
		name       string
		candidates []Candidate
		want       vedette.Version
	}{
		{"no candidates", nil, vedette.Version{}},
		{"another one", []Candidate{{name: "c-v003", number: 3}}, vedette.Version{Number: 4, Latest: "c-v003"}},
		{"the same data", []Candidate{{name: "c-v002", number: 2}, {name: "c-v003", number: 3}}, vedette.Version{Number: 2, Exists: true, Latest: "c-v003"}},
		{"the same manifest", []Candidate{{name: "c-v004", number: 4, lastApplied: applied}}, vedette.Version{Number: 4, Exists: true, Latest: "c-v004"}},
		{"the newer of two", []Candidate{{name: "c-v002", number: 2}, {name: "c-v004", number: 4, lastApplied: applied}}, vedette.Version{Number: 4, Exists: true, Latest: "c-v004"}},
		{"one that is being deleted", []Candidate{{name: "c-v002", number: 2, deleting: true}}, vedette.Version{Number: 3, Latest: "c-v002"}},
		{"one without a version", []Candidate{{name: "c", number: -1}}, vedette.Version{Latest: "c"}},
		{"a foreign object with the next name", []Candidate{{name: "c-v003", number: 3}, {name: "c-v004", foreign: true}, {name: "c-v005", foreign: true}, {name: "c-v009", foreign: true}},
			vedette.Version{Number: 6, Latest: "c-v003"}},
		{"a foreign object only", []Candidate{{name: "c-v000", foreign: true}}, vedette.Version{Number: 1}},
		{"the same data beside a foreign object", []Candidate{{name: "c-v002", number: 2}, {name: "c-v003", foreign: true}}, vedette.Version{Number: 2, Exists: true, Latest: "c-v002"}},
		{"one that is gone meanwhile", []Candidate{{name: "c-v009", number: 9}}, vedette.Version{Number: 10, Latest: "c-v009"}},
	} {
		c := Chooser{Series: Series{Kind: configMapKind, Namespace: "n", Name: "c"}, Manifest: m, Salts: &SaltCache{},
			ReadConfigMap: func(_ context.Context, name string) ([]byte, bool, error) {
				body, found := live[name]
				return []byte(body), found, nil
			}}
		if got, err := c.Choose(t.Context(), tt.candidates); err != nil || fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

// TestChooseEndsByDeadline checks that no digest is derived after the deadline, and that a salt that
// was compared before costs nothing.
func TestChooseEndsByDeadline(t *testing.T) {
	m, err := manifest.Parse([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"MQ=="}}`))
	if err != nil {
		t.Fatal(err)
	}
	const salts, perSalt, inTime = 20, 3, 5
	var candidates []Candidate
	for i := range salts * perSalt {
		d := digest{rounds: 1, salt: bytes.Repeat([]byte{byte(i / perSalt)}, saltBytes), tag: make([]byte, tagBytes)}
		candidates = append(candidates, Candidate{name: fmt.Sprintf("s-v%03d", i), number: i, digest: sensitiveBytes(d.encode())})
	}
	c := Chooser{Series: Series{Kind: secretKind, Namespace: "n", Name: "s"}, Manifest: m, Salts: &SaltCache{}}
	for _, tt := range []struct {
		remaining, want int // number of checks of the context
		err             error
	}{
		{salts, salts, nil},
		{inTime, inTime + 1, context.DeadlineExceeded},
		{0, 1, context.DeadlineExceeded},
	} {
		ctx := &expiringContext{Context: t.Context(), remaining: tt.remaining}
		if _, err := c.Choose(ctx, candidates); !errors.Is(err, tt.err) || ctx.checks != tt.want {
			t.Errorf("deadline after %d checks: got %v after %d checks, want %v after %d", tt.remaining, err, ctx.checks, tt.err, tt.want)
		}
	}
}

// expiringContext is a context whose deadline passes after a number of checks.
type expiringContext struct {
	context.Context
	remaining, checks int
}

func (c *expiringContext) Err() error {
	c.checks++
	if c.checks > c.remaining {
		return context.DeadlineExceeded
	}
	return nil
}

func TestCandidateNeedsMatchingAnnotations(t *testing.T) {
	const annotation = `"artifact.spinnaker.io/`
	for _, tt := range []struct {
		name, annotations string
		want              bool
		wantNumber        int
	}{
		{"as Spinnaker writes them", annotation + `type":"kubernetes/configMap",` + annotation + `name":"c",` + annotation + `location":"n",` +
			annotation + `version":"v003"`, true, 3},
		{"as early versions wrote them", annotation + `type":"\"kubernetes/configMap\"",` + annotation + `name":"\"c\"",` + annotation +
			`location":"\"n\"",` + annotation + `version":"\"v003\""`, true, 3},
		{"without a namespace in its manifest", annotation + `type":"kubernetes/configMap",` + annotation + `name":"c",` + annotation +
			`version":"v004"`, true, 4},
		{"another name", annotation + `type":"kubernetes/configMap",` + annotation + `name":"d",` + annotation + `location":"n"`, false, 0},
		{"no annotations", "", false, 0},
	} {
		raw := []byte(`{"metadata":{"name":"x","annotations":{` + tt.annotations + `}}}`)
		got, ok, err := Series{Kind: configMapKind, Namespace: "n", Name: "c"}.ParseCandidate(raw)
		if err != nil || ok != tt.want || got.number != tt.wantNumber {
			t.Errorf("%s: got %+v, %v, %v", tt.name, got, ok, err)
		}
	}
}
