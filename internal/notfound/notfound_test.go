package notfound_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/notfound"
)

// TestRules checks each rule against what services send with 404, and against what others send at a wrong address.
func TestRules(t *testing.T) {
	const (
		spring     = `{"timestamp":1764277534,"status":404,"error":"Not Found","message":"No project found with id x"}`
		noKey      = `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message><Key>x</Key></Error>"
		noVersion  = `<Error><Code>NoSuchVersion</Code></Error>`
		noBucket   = `<Error xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Code>NoSuchBucket</Code></Error>`
		gcsText    = "No such object: bucket/x"
		gcsJSON    = `{"error":{"code":404,"message":"No such object: bucket/x","errors":[{"reason":"notFound"}]}}`
		oracle     = `{"code":"ObjectNotFound","message":"The object 'x' was not found in the bucket 'b'"}`
		kubernetes = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	)
	others := []string{
		"", "404 page not found\n", "<html><head><title>404 Not Found</title></head><body>nginx</body></html>", `{"message":"Not Found"}`,
		"default backend - 404", "null", "[]", "{", `"404"`, "<Error><Code>NoSuchWebsite</Code></Error>", "<Error><Code>NoSuchKey</Code>",
		"<html><Error><Code>NoSuchKey</Code></Error></html>", `{"code":404}`, `{"status":"404"}`, `{"code":"404 Not Found: Requested route does not exist."}`,
		"\xff\xfe", strings.Repeat("<a>", 20_000), strings.Repeat("[", 60_000),
	}
	for name, rule := range map[string]struct {
		rule notfound.Rule
		own  []string
	}{
		"Spring":     {notfound.Spring, []string{spring}},
		"S3":         {notfound.S3, []string{noKey, noVersion, noBucket}},
		"S3Object":   {notfound.S3Object, []string{noKey, noVersion}},
		"GCS":        {notfound.GCS, []string{gcsText, gcsJSON, "The specified bucket does not exist.\n"}},
		"Oracle":     {notfound.Oracle, []string{oracle}},
		"Kubernetes": {notfound.Kubernetes, []string{kubernetes}},
	} {
		all := append([]string{spring, noKey, noVersion, noBucket, gcsText, gcsJSON, oracle, kubernetes}, others...)
		for _, body := range append(all, rule.own...) {
			want := false
			for _, own := range rule.own {
				want = want || own == body
			}
			if got := rule.rule([]byte(body)); got != want {
				t.Errorf("%s: got %v for %.80q, want %v", name, got, body, want)
			}
		}
	}
}

// TestReadIsBounded checks that a body without an end is not read into memory.
func TestReadIsBounded(t *testing.T) {
	if got := len(notfound.Read(strings.NewReader(strings.Repeat("x", 3*notfound.MaxBytes)))); got != notfound.MaxBytes {
		t.Errorf("got %d bytes, want %d", got, notfound.MaxBytes)
	}
}
