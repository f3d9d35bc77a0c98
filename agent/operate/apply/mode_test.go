package apply

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/operate/manifest"
)

func TestOptionsFollowModeAndAnnotation(t *testing.T) {
	const service, configMap = "Service", "ConfigMap"
	clientSide, serverSide, forced := Options{}, Options{ServerSide: true}, Options{ServerSide: true, Force: true}
	never, always := Mode{Enabled: "Never"}, Mode{Enabled: "ALWAYS"}
	for _, tt := range []struct {
		name       string
		mode       Mode
		kind       string
		annotation string
		size       int
		strategy   vedette.Strategy
		want       Options
	}{
		{"by default", Mode{}, service, "", 0, vedette.StrategyDefault, clientSide},
		{"a ConfigMap", Mode{}, configMap, "", 0, vedette.StrategyDefault, forced},
		{"a ConfigMap client-side", Mode{}, configMap, "", 0, vedette.StrategyClientSide, clientSide},
		{"a ConfigMap whose annotation says no", Mode{}, configMap, "false", 0, vedette.StrategyDefault, clientSide},
		{"an annotation", Mode{}, service, "enabled", 0, vedette.StrategyDefault, serverSide},
		{"an annotation with force", Mode{}, service, "force-conflicts", 0, vedette.StrategyDefault, forced},
		{"a strategy", Mode{}, service, "", 0, vedette.StrategyServerSide, serverSide},
		{"a strategy with force", Mode{}, service, "", 0, vedette.StrategyForceConflicts, forced},
		{"too large for the annotation", Mode{}, service, "", maxAnnotationBytes, vedette.StrategyDefault, forced},
		{"too large, but client-side", Mode{}, service, "", maxAnnotationBytes, vedette.StrategyClientSide, clientSide},
		{"too large, but never", never, service, "", maxAnnotationBytes, vedette.StrategyDefault, clientSide},
		{"always", always, service, "", 0, vedette.StrategyDefault, serverSide},
		{"never, before the annotation", never, service, "true", 0, vedette.StrategyDefault, clientSide},
		{"never of all kinds, before always of one", Mode{Enabled: "never", Kinds: []KindMode{{Kind: "service", Enabled: "always"}}}, service, "", 0, vedette.StrategyDefault, clientSide},
		{"never of one kind, before the annotation", Mode{Kinds: []KindMode{{Kind: "service", Enabled: "never"}}}, service, "true", 0, vedette.StrategyDefault, clientSide},
		{"a sole manager", Mode{Enabled: "always", ClearManagedFields: "always"}, service, "", 0, vedette.StrategyDefault, Options{ServerSide: true, ClearManagedFields: true}},
	} {
		annotations := map[string]string{}
		if tt.annotation != "" {
			annotations[serverSideAnnotation] = tt.annotation
		}
		raw, err := json.Marshal(object{"apiVersion": "v1", "kind": tt.kind, "metadata": object{"name": "a", "annotations": annotations}, "data": strings.Repeat("x", tt.size)})
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		resource := vedette.Resource{Kind: vedette.Kind{Name: tt.kind}, Version: "v1", Plural: strings.ToLower(tt.kind) + "s", Singular: strings.ToLower(tt.kind)}
		if got := tt.mode.OptionsFor(resource, m, tt.strategy); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
