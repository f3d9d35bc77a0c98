package bucket

import (
	"net/url"
	"strings"
	"testing"

	"github.com/vedette-io/vedette"
)

// TestLocateStaysBelowEndpoint checks that no name leads out of the path of an endpoint, or to another bucket.
func TestLocateStaysBelowEndpoint(t *testing.T) {
	s3 := NewS3(S3Config{Endpoint: "http://minio:9000/base/", Region: "eu-1"})
	hosts := NewS3(S3Config{Endpoint: "http://minio:9000/base", Region: "eu-1", VirtualHosts: true})
	gcs := NewGCS(GCSConfig{Endpoint: "http://gcs:9000"})
	for name, service := range map[string]struct {
		locate func(Object) (*url.URL, error)
		base   string
	}{"S3": {s3.Locate, "/base/"}, "hosts of S3": {hosts.Locate, "/base/"}, "GCS": {gcs.Locate, "/storage/v1/b/"}} {
		for _, o := range []Object{
			{Bucket: "..", Path: "admin"}, {Bucket: ".", Path: "other/secret"}, {Bucket: "a..b", Path: "x"}, {Bucket: ".a", Path: "x"}, {Bucket: "a.", Path: "x"},
			{Bucket: "", Path: "x"}, {Bucket: "a/b", Path: "x"}, {Bucket: "a%2fb", Path: "x"}, {Bucket: "a@b", Path: "x"}, {Bucket: "a:1", Path: "x"},
			{Bucket: "a\\b", Path: "x"}, {Bucket: "a b", Path: "x"}, {Bucket: "ä", Path: "x"},
			{Bucket: "a", Path: ""}, {Bucket: "a", Path: ".."}, {Bucket: "a", Path: "../b/x"}, {Bucket: "a", Path: "x/.."}, {Bucket: "a", Path: "./x"},
		} {
			if u, err := service.locate(o); vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%s: %+v: got %v, %v, want it to be rejected", name, o, u, err)
			}
		}
		for _, o := range []Object{
			{Bucket: "a", Path: "x"}, {Bucket: "a.b-c_d", Path: "..x/x../.../%2e%2e/y"}, {Bucket: "a", Path: "/x"}, {Bucket: "a", Path: `..\..\x`},
			{Bucket: "a", Path: "x?y#z&w;v=1"}, {Bucket: "a", Path: "\x00\n"},
		} {
			u, err := service.locate(o)
			if err != nil {
				t.Errorf("%s: %+v: %v", name, o, err)
				continue
			}
			if path := u.EscapedPath(); !strings.HasPrefix(path, service.base) || strings.Contains(path, "/../") || strings.ContainsAny(u.RequestURI(), "#;\\ \n\x00") {
				t.Errorf("%s: %+v: got %s, want a path below %s", name, o, u, service.base)
			}
		}
	}
}
