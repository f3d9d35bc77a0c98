package operate

import (
	"fmt"
	"strings"
	"testing"
)

func TestReasonSaysWhoWroteTheObject(t *testing.T) {
	for _, tt := range []struct {
		name    string
		entries []fieldManager
		want    string
	}{
		{"applied by us", []fieldManager{{Manager: "other", Operation: "Apply"}, {Manager: "kubectl", Operation: "Apply"}}, ""},
		{"applied by others", []fieldManager{{Manager: "helm", Operation: "Apply"}}, "it was applied by the field manager helm, not by kubectl"},
		{"only the status by us", []fieldManager{{Manager: "kubectl", Operation: "Apply", Subresource: "status"}}, "the cluster does not record who wrote it"},
		{"updated by us", []fieldManager{{Manager: "kubectl", Operation: "Update"}}, "it was never applied; it was written by kubectl"},
		{"many", []fieldManager{{Manager: "a"}, {Manager: "b"}, {Manager: "c"}, {Manager: "d"}}, "it was never applied; it was written by a, b, c and others"},
		{"nobody", nil, "the cluster does not record who wrote it"},
	} {
		var m managers
		for _, entry := range tt.entries {
			m.add(entry)
		}
		if got := m.keptReason("kubectl"); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	annotated := managers{annotated: true}
	if got := annotated.keptReason("kubectl"); got != "" {
		t.Errorf("annotated: got %q", got)
	}
	var many managers
	for i := range 10_000 {
		many.add(fieldManager{Manager: strings.Repeat("x", 128) + fmt.Sprint(i), Operation: "Apply"})
	}
	if n := many.size(); n > 20_000 {
		t.Errorf("the managers of one object take %d bytes", n)
	}
}
