//go:build linux

package operate_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate"
)

// TestSecretPreviewShowsNoValue checks that a dry run names the keys that change, by every way to apply, and no value.
func TestSecretPreviewShowsNoValue(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	const canary = "c4n4ry-of-a-secret"
	secret := func(name string, data, stringData object) object {
		return object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": name}, "data": data, "stringData": stringData}
	}
	live := object{"same": "b25l", "other": "dHdv", "gone": "dGhyZWU=", "sl/ash~": "dGlsZGU="}
	delete(live, "sl/ash~")
	wanted := secret("s", object{"same": "b25l\n", "other": "Zm91cg=="}, object{"new": canary})
	b.kubectlApply([]object{secret("s", live, nil)})
	b.apply(vedette.StrategyDefault, secret("ours", live, nil))
	for _, name := range []string{"s", "ours", "missing"} {
		wanted["metadata"].(object)["name"] = name
		want := map[string]vedette.DataChange{"same": "unchanged", "other": "changed", "gone": "removed", "new": "added"}
		if name == "missing" {
			want = map[string]vedette.DataChange{"same": "added", "other": "added", "new": "added"}
		}
		for _, strategy := range []vedette.Strategy{vedette.StrategyDefault, vedette.StrategyClientSide} {
			if name == "s" && strategy == vedette.StrategyDefault {
				continue // a dry run does not take over what was applied client-side (decision 27)
			}
			out := b.dryRun(vedette.ApplyArgs{Manifest: encode(t, wanted), Namespace: b.namespace, Strategy: strategy})
			var preview vedette.SecretPreview
			if err := json.Unmarshal(out.Result, &preview); err != nil {
				t.Errorf("%s %s: %v in %+v", name, strategy, err, out)
				continue
			}
			if !maps.Equal(preview.Keys, want) || preview.Incomplete {
				t.Errorf("%s %s: got %+v, want %v", name, strategy, preview, want)
			}
			if text := string(encode(t, out)); strings.Contains(text, canary) || strings.Contains(text, "Zm91cg") {
				t.Errorf("the outcome has data: %s", text)
			}
		}
	}
	if got := dig(b.live(core, "secrets", "s"), "data", "other"); got != "dHdv" {
		t.Errorf("got the data %v after dry runs, want it unchanged", got)
	}
}
