package search

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

func TestTypesBecomeSearchedKinds(t *testing.T) {
	for _, tt := range []struct {
		query string
		want  string
	}{
		{"type=pod", "pod"},
		{"type=applications,clusters", "applications clusters"},
		{"type=serverGroups", "cronJob daemonSet job replicaSet statefulSet"},
		{"type=SERVERGROUPS", "cronJob daemonSet job replicaSet statefulSet"},
		{"type=loadBalancers&type=instances", "ingress pod service"},
		{"type=loadBalancers,instances&type=pod", "pod"},
		{"type=securityGroups,,projects", "networkPolicy projects"},
		{"type=Deployment", ""},
		{"type=pods", ""},
		{"type=unclassified", ""},
		{"type=CronTab.stable.example.com", ""},
	} {
		s, err := parseSearch(parseQuery(t, tt.query))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(s.types)), " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.query, got, tt.want)
		}
	}
	all, err := parseSearch(parseQuery(t, "type="))
	if err != nil || !all.types["configMap"] || !all.types["pod"] || all.types[applicationType] {
		t.Errorf("without any type: got %v, error %v, want all kinds and no applications", all.types, err)
	}
}

func TestPageParametersAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name, query string
		skip        int64
		take        int
		platform    string
	}{
		{"defaults", "q=web&type=pod", 0, 10_000, "aws"},
		{"second page", "type=pod&pageSize=500&page=2", 500, 500, "aws"},
		{"kubernetes only", "type=pod&platform=kubernetes&pageSize=1", 0, 1, "kubernetes"},
		{"another platform finds nothing", "type=pod&platform=aws", 0, 0, "aws"},
		{"a page before the first finds nothing", "type=pod&page=0", 0, 0, "aws"},
		{"a negative page size finds nothing", "type=pod&pageSize=-1", 0, 0, "aws"},
		{"a large page is cut", "type=pod&pageSize=2147483647&page=3", 20_000, 10_000, "aws"},
		{"the last page that can be named", "type=pod&pageSize=2147483647&page=2147483647", 21_474_836_460_000, 10_000, "aws"},
		{"empty numbers are the defaults", "type=pod&pageSize=&page=", 0, 10_000, "aws"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parseSearch(parseQuery(t, tt.query))
			if err != nil {
				t.Fatal(err)
			}
			if skip, take := s.window(); skip != tt.skip || take != tt.take || s.resultPlatform() != tt.platform {
				t.Errorf("got %d, %d, %s, want %+v", skip, take, s.resultPlatform(), tt)
			}
		})
	}
}

func TestInvalidSearchRequests(t *testing.T) {
	for _, query := range []string{"q=web", "type=pod&page=x", "type=pod&pageSize=2147483648", "type=pod&q=" + strings.Repeat("a", 3000)} {
		if _, err := parseSearch(parseQuery(t, query)); vedette.KindOf(err) != vedette.Invalid {
			t.Errorf("%.40s: got error %v, want vedette.Invalid", query, err)
		}
	}
}

func TestPatternsMatchKeysInOrder(t *testing.T) {
	const key = "kubernetes.v2:infrastructure:replicaSet:prod:shop:web-v003"
	for text, want := range map[string]bool{"": true, "*": true, "web": true, "prod:shop": true, "shop*v003": true, "v003*shop": false,
		"*web*": true, "replicaset": false, "replicaSet": true, "infra": true, "nope": false, "web-v003 ": false} {
		if got := newKeyPattern(text).matches(key); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func parseQuery(t *testing.T, query string) url.Values {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func FuzzParseSearch(f *testing.F) {
	f.Add("q=web&type=pod&pageSize=500&page=2")
	f.Add("q=%2A*%25&type=,,&type=unclassified&platform=kubernetes&page=-2147483648&pageSize=-2147483648")
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		s, err := parseSearch(values)
		if err != nil {
			if vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("got error %v, want vedette.Invalid", err)
			}
			return
		}
		if skip, take := s.window(); skip < 0 || take < 0 || take > defaultPageSize {
			t.Errorf("got the window %d, %d", skip, take)
		}
		if len(s.types) > len(spinnakerKinds)+3 {
			t.Errorf("got %d types", len(s.types))
		}
		newKeyPattern(s.text).matches(query)
	})
}
