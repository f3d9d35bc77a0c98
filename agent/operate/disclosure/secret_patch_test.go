package disclosure

import (
	"bytes"
	"fmt"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/redact"
)

// FuzzSecretPatch checks that the response to a patch of a Secret does not depend on the Secret's values:
// two Secrets that differ only in these are patched as API servers patch them, and both patches return
// the same, or both fail.
func FuzzSecretPatch(f *testing.F) {
	for _, seed := range []string{
		`[{"op":"add","path":"/data/x","value":"eA=="},{"op":"remove","path":"/data/password"}]`,
		`[{"op":"copy","from":"/data/password","path":"/metadata/annotations/moniker.spinnaker.io~1application"}]`,
		`[{"op":"move","from":"/metadata/annotations/example.com~1note","path":"/metadata/labels/x"}]`,
		`[{"op":"test","path":"/data/password","value":"Zmlyc3Q="}]`, `[{"op":"test","path":"","value":{}}]`,
		`[{"op":"test","path":"/metadata/labels/app","value":"shop"},{"op":"replace","path":"/metadata","value":{"name":"t","resourceVersion":"2"}}]`,
		`[{"op":"replace","path":"/metadata/annotations/helm.sh~1hook","value":"x","from":"/data"}]`,
		`[{"op":"replace","path":"","value":null}]`, `[{"op":"replace","path":""}]`,
		`[{"op":"add","path":"/data/password/0","value":1},{"op":"add","path":"/metadata/finalizers/-","value":"f"}]`,
		`[{"op":"add","Op":"copy","op":"test","path":"/type","PATH":"/data","value":null}]`, `[null,{}]`, `[{"op":"add","path":"","value":[]}]`,
		`[{"op":"replace","path":"/apiVersion","value":"apps/v1"},{"op":"replace","path":"/kind","value":"List"}]`,
	} {
		f.Add([]byte(seed))
	}
	r, err := redact.New(redact.Config{}, nil, vedette.HeaderAnnotations)
	if err != nil {
		f.Fatal(err)
	}
	resource := vedette.Resource{Kind: vedette.Kind{Name: "Secret"}, Version: "v1", Plural: "secrets", Namespaced: true}
	f.Fuzz(func(t *testing.T, raw []byte) {
		steps, err := checkSecretPatch(raw)
		if err != nil {
			return
		}
		patch, err := jsonpatch.DecodePatch(steps)
		if err != nil {
			t.Fatalf("got %s of %s: %v", steps, raw, err)
		}
		first, firstOK := patchAndRedact(patch, r, resource, "Zmlyc3Q=")
		second, secondOK := patchAndRedact(patch, r, resource, "c2Vjb25kLWFuZC1sb25nZXI=")
		if firstOK != secondOK || !bytes.Equal(first, second) {
			t.Errorf("%s distinguishes two Secrets: got %v %s and %v %s", raw, firstOK, first, secondOK, second)
		}
	})
}

// patchAndRedact returns the redacted Secret with a value after a patch, and whether the patch succeeded.
// Like API servers, it recovers from panics.
func patchAndRedact(patch jsonpatch.Patch, r *redact.Redactor, resource vedette.Resource, value string) (output []byte, ok bool) {
	defer func() {
		if recover() != nil {
			output, ok = nil, false
		}
	}()
	raw, err := patch.Apply(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n","uid":"u","resourceVersion":"1",
		"labels":{"app":"shop"},"finalizers":["a/b"],"annotations":{"helm.sh/hook":"pre-install","example.com/note":%q,
		"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"password\":\"%s\"}}"}},"type":"Opaque","data":{"password":%q}}`, value, value, value))
	if err != nil {
		return nil, false
	}
	obj, _, err := r.Object(nil, resource, raw)
	if err != nil {
		return []byte(err.Error()), true
	}
	return obj.Body, true
}
