//go:build linux

package operate_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// encodings returns the forms in which a value could leave: unchanged, in base64, in hexadecimal, and
// all of these reversed, each in two halves too.
func encodings(value string) [][]byte {
	var all [][]byte
	for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value))} {
		backwards := []byte(form)
		slices.Reverse(backwards)
		for _, b := range [][]byte{[]byte(form), backwards} {
			all = append(all, b[:len(b)/2], b[len(b)/2:])
		}
	}
	return all
}

// wantNoneOf checks that the output contains none of the values.
func (b *testbed) wantNoneOf(what string, output []byte, values ...string) {
	b.Helper()
	for _, value := range values {
		for _, form := range encodings(value) {
			if i := bytes.Index(output, form); i >= 0 {
				b.Errorf("%s contains a value as %q: %s", what, form, output[max(0, i-200):min(len(output), i+60)])
				return
			}
		}
	}
}

// The values of a Secret with canaries, named by where they are.
const (
	canaryInData        = "qZ7-in-the-data-wK4"
	canaryInLastApplied = "vB9-as-kubectl-applied-it-mX2"
	canaryInAnnotation  = "hT3-in-an-annotation-rP8"
	canaryKey           = "password"
)

// createCanarySecret creates a Secret with canaries in its data and annotations.
func (b *testbed) createCanarySecret(name string) {
	b.Helper()
	must(b, plane.Create(b.Context(), b.path(core, "secrets", ""), object{"apiVersion": "v1", "kind": "Secret",
		"metadata": object{"name": name, "labels": object{"app": "shop", "judged": "yes"}, "annotations": object{
			"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"v1","kind":"Secret","stringData":{"password":"` + canaryInLastApplied + `"}}`,
			"example.com/note": canaryInAnnotation}},
		"stringData": object{canaryKey: canaryInData}}))
}

func (b *testbed) secretPatch(name string, kind vedette.PatchType, patch string) vedette.PatchArgs {
	return vedette.PatchArgs{Target: b.target("secret", name), Type: kind, Patch: []byte(patch)}
}

// TestJSONPatchCannotRevealSecretData sends JSON patches that copy, move or guess the data of a Secret, in
// all notations, with and without a dry run.
func TestJSONPatchCannotRevealSecretData(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCanarySecret("s")
	encoded := base64.StdEncoding.EncodeToString([]byte(canaryInData))
	before := encode(t, b.live(core, "secrets", "s"))
	for _, patch := range []string{
		`[{"op":"copy","from":"/data/password","path":"/metadata/annotations/x"}]`,
		`[{"op":"copy","from":"/data/password","path":"/metadata/labels/x"}]`,
		`[{"op":"move","from":"/data/password","path":"/metadata/annotations/x"}]`,
		`[{"op":"copy","from":"/dat\u0061/password","path":"/metadata/annotations/x"}]`,
		`[{"op":"copy","from":"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration","path":"/metadata/annotations/moniker.spinnaker.io~1application"}]`,
		`[{"op":"copy","from":"/metadata/annotations/example.com~1note","path":"/metadata/annotations/moniker.spinnaker.io~1application"}]`,
		`[{"op":"copy","from":"","path":"/metadata/annotations/x"}]`,
		`[{"op":"copy","from":"/data","path":"/metadata/annotations"}]`,
		`[{"op":"move","from":"/data","path":"/metadata/labels"}]`,
		`[{"op":"add","path":"/metadata/annotations/y","value":"z"},{"op":"copy","from":"/data/password","path":"/metadata/annotations/x"}]`,
		`[{"op":"add","op":"copy","from":"/data/password","path":"/metadata/annotations/x","value":"y"}]`,
		`[{"op":"test","path":"/data/password","value":"` + encoded + `"}]`,
		`[{"op":"test","path":"/data/password","value":"guessed"}]`,
		`[{"op":"test","path":"/data","value":{"password":"` + encoded + `"}}]`,
		`[{"op":"test","path":"","value":{}}]`,
		`[{"op":"test","path":"/metadata/annotations/example.com~1note","value":"` + canaryInAnnotation + `"}]`,
		`[{"op":"COPY","from":"/data/password","path":"/metadata/annotations/x"}]`,
		`[{"op":"replace","path":""}]`,
		"- {op: copy, from: /data/password, path: /metadata/annotations/x}",
	} {
		for _, kind := range []string{"secret", "Secrets", "secret."} {
			args := b.secretPatch("s", "JSON", patch)
			args.Kind = kind
			for _, out := range []vedette.Outcome{b.dryRun(args), b.execute(args)} {
				if out.State != vedette.Failed || out.Status != 400 {
					t.Errorf("%s of %s: got %s %d %s", patch, kind, out.State, out.Status, out.Message)
				}
				b.wantNoneOf(patch, encode(t, out), canaryInData, canaryInLastApplied, canaryInAnnotation)
			}
		}
	}
	if after := encode(t, b.live(core, "secrets", "s")); !bytes.Equal(before, after) {
		t.Errorf("Secret: got %s before and %s after", before, after)
	}
}

// TestSafeSecretPatchesAreAccepted changes a Secret by steps that write their own values.
func TestSafeSecretPatchesAreAccepted(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	b.createCanarySecret("s")
	for _, patch := range []string{
		`[{"op":"add","path":"/data/more","value":"bW9yZQ=="}]`,
		`[{"op":"replace","path":"/data/password","value":"b3RoZXI="},{"op":"remove","path":"/metadata/annotations/example.com~1note"}]`,
		`[{"op":"test","path":"/metadata/name","value":"s"},{"op":"test","path":"/metadata/labels/app","value":"shop"},{"op":"add","path":"/metadata/labels/tier","value":"back","unknown":1}]`,
		"- op: add\n  path: /stringData\n  value: {last: hand}\n",
	} {
		out := b.mustExecute(b.secretPatch("s", vedette.JSONPatch, patch))
		b.wantNoneOf(patch, encode(t, out), canaryInData, canaryInLastApplied, canaryInAnnotation)
	}
	live := b.live(core, "secrets", "s")
	if data, _ := dig(live, "data").(object); data["more"] != "bW9yZQ==" || data["password"] != "b3RoZXI=" || data["last"] != "aGFuZA==" {
		t.Errorf("data: got %v", data)
	}
	if dig(live, "metadata", "labels", "tier") != "back" || dig(live, "metadata", "annotations", "example.com/note") != nil {
		t.Errorf("metadata: got %v", live["metadata"])
	}
	b.wantFailure(b.secretPatch("s", vedette.JSONPatch, `[{"op":"test","path":"/metadata/resourceVersion","value":"1"},{"op":"add","path":"/data/a","value":"YQ=="}]`), 422)
}
