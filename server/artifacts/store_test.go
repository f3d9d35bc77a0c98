package artifacts_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/internal/configfile"
	"github.com/vedette-io/vedette/server/artifacts"
)

func TestStoredArtifactsNeedPermission(t *testing.T) {
	server := serve(t, s3Server{secret: "s3cret", region: "eu-1",
		objects: map[string]string{"/store/shop/abc": "kind: Service\n", "/store/shop/untagged": "x"},
		tags:    map[string]string{"/store/shop/abc": "shop"}}.ServeHTTP)
	accounts := artifacts.New(artifacts.Config{Store: artifacts.StoreConfig{Type: "s3", S3: artifacts.StoreBucket{Bucket: "store",
		URL: server, Region: "eu-1", AccessKey: "AKID", SecretKey: configfile.NewSecret("s3cret"), ForcePathStyle: true}}})
	asked := ""
	mayRead := func(_ context.Context, application string) error { asked = application; return nil }
	mayNot := func(context.Context, string) error { return vedette.Errorf(vedette.Denied, "Access is denied") }

	got, err := accounts.Stored(t.Context(), "shop", "abc", mayRead)
	if want := "a2luZDogU2VydmljZQo="; err != nil || got != want || asked != "shop" {
		t.Errorf("got %q, %v, asked for application %q, want %q for shop", got, err, asked, want)
	}
	remote := artifact("remote/base64", "embedded-artifact", "", "ref://shop/abc")
	content, err := accounts.Fetch(t.Context(), artifacts.Request{Artifact: remote, MayRead: mayRead})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(content); err != nil || string(text) != "kind: Service\n" {
		t.Errorf("got %q, %v, want the content", text, err)
	}
	_, err = accounts.Fetch(t.Context(), artifacts.Request{Artifact: remote, MayRead: mayNot})
	expectError(t, "no permission", err, vedette.Denied, "Access is denied")
	_, err = accounts.Stored(t.Context(), "shop", "untagged", mayRead)
	expectError(t, "an object of no application", err, vedette.Denied, "no tag")
	_, err = accounts.Stored(t.Context(), "shop", "missing", mayRead)
	expectError(t, "a missing object", err, vedette.NotFound, "does not have it")
	noBucket := artifacts.New(artifacts.Config{Store: artifacts.StoreConfig{Type: "s3", S3: artifacts.StoreBucket{Bucket: "other",
		URL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
			writeNotFound(w, "<Error><Code>NoSuchBucket</Code></Error>")
		}), ForcePathStyle: true}}})
	_, err = noBucket.Stored(t.Context(), "shop", "abc", mayRead)
	expectError(t, "a bucket that the operator misspelled", err, "", "check the address")
	for _, path := range [][2]string{{"..", "abc"}, {"shop", ".."}, {"", "abc"}, {"shop", ""}, {"shop", "a//b"}} {
		_, err := accounts.Stored(t.Context(), path[0], path[1], mayRead)
		expectError(t, path[0]+"/"+path[1], err, vedette.Invalid, "ref://APPLICATION/HASH")
	}
	_, err = artifacts.New(artifacts.Config{}).Stored(t.Context(), "shop", "abc", mayRead)
	expectError(t, "no store", err, vedette.Invalid, "set artifact-store")
}
