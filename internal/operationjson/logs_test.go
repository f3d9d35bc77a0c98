package operationjson_test

import (
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/operationjson"
)

// TestNoLogParameterIsForgotten sends a request with each field of LogsArgs as query
// parameters.
func TestNoLogParameterIsForgotten(t *testing.T) {
	for i, f := range reflect.VisibleFields(reflect.TypeFor[vedette.LogsArgs]()) {
		if f.Anonymous || f.Name == "Kind" || f.Name == "APIVersion" { // a log is always that of a pod
			continue
		}
		want := operationjson.LogRequest{Account: "prod", Args: vedette.LogsArgs{Target: vedette.Target{Name: "web-0"}}}
		field := reflect.ValueOf(&want.Args).Elem().FieldByIndex(f.Index)
		if f.Type == reflect.TypeFor[time.Time]() {
			field.Set(reflect.ValueOf(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)))
		} else {
			setField(t, field, i+1)
		}
		got, err := operationjson.ParseLogs(want.Values())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s as %s:\ngot  %+v, %v\nwant %+v", f.Name, want.Values().Encode(), got, err, want)
		}
	}
}

func FuzzParseLogs(f *testing.F) {
	f.Add("account=prod&pod=web-0&since=90s&follow=true")
	f.Add("account=prod&pod=web-0&tailLines=10&sinceTime=2026-01-31T12:00:00Z")
	f.Add("account=a&pod=p&since=1ns&tailLines=-0&container=%ff")
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		first, err := operationjson.ParseLogs(values)
		if err != nil {
			if vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("got error kind %v, want invalid: %v", vedette.KindOf(err), err)
			}
			return
		}
		second, err := operationjson.ParseLogs(first.Values())
		if err != nil || !sameLogs(first, second) {
			t.Errorf("%s: got %+v, %v after encoding, want %+v", query, second, err, first)
		}
	})
}

// sameLogs compares times by their instant, because a parsed time zone has no name.
func sameLogs(a, b operationjson.LogRequest) bool {
	if !a.Args.SinceTime.Equal(b.Args.SinceTime) {
		return false
	}
	a.Args.SinceTime, b.Args.SinceTime = time.Time{}, time.Time{}
	return reflect.DeepEqual(a, b)
}
