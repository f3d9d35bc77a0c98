package target

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestParseResourceArgs(t *testing.T) {
	for _, tt := range []struct {
		args string
		want []ResourceArg
	}{
		{"pods", []ResourceArg{{Kind: "pods"}}},
		{"pods,svc", []ResourceArg{{Kind: "pods"}, {Kind: "svc"}}},
		{"pod a b", []ResourceArg{{Kind: "pod", Name: "a"}, {Kind: "pod", Name: "b"}}},
		{"pod,svc a", []ResourceArg{{Kind: "pod", Name: "a"}, {Kind: "svc", Name: "a"}}},
		{"pod/a svc/b", []ResourceArg{{Kind: "pod", Name: "a"}, {Kind: "svc", Name: "b"}}},
		{"dev/Deployment.apps/shop/web", []ResourceArg{{Account: "dev", Kind: "Deployment.apps", Namespace: "shop", Name: "web"}}},
		{"dev/Node/_/n1", []ResourceArg{{Account: "dev", Kind: "Node", Name: "n1"}}},
	} {
		got, err := ParseResourceArgs(strings.Fields(tt.args))
		if err != nil || len(got) != len(tt.want) {
			t.Errorf("%s: got %+v, %v, want %+v", tt.args, got, err, tt.want)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%s: got %+v, want %+v", tt.args, got[i], tt.want[i])
			}
		}
	}
	for _, args := range []string{"pods,", ",", "pod/", "/a", "a/b/c", "a/b/c/d/e", "pod/a svc", "pod a/b", "a//b/c"} {
		if got, err := ParseResourceArgs(strings.Fields(args)); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%s: got %+v, %v, want an error of kind Invalid", args, got, err)
		}
	}
}

func FuzzParseResourceArgs(f *testing.F) {
	f.Add("pods", "a")
	f.Add("a/b/c/d", "e/f")
	f.Fuzz(func(t *testing.T, first, second string) {
		args, err := ParseResourceArgs([]string{first, second})
		for _, arg := range args {
			if err == nil && (arg.Kind == "" || strings.ContainsAny(arg.Kind+arg.Name, "/")) {
				t.Errorf("%q %q gave %+v", first, second, arg)
			}
		}
	})
}
