package secret_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/secret"
)

const document = `
db: &db
  password: hunter2
  port: 5432
  user.name: root
  "null": ~
  lines: |
    a
    b
db.url: jdbc
list: [a]
copy: *db
self: &self {again: *self, end: x}
0: zero
`

func TestYAMLPathsNeedASingleValue(t *testing.T) {
	for path, want := range map[string]string{
		"db.password": "hunter2", "db.port": "5432", "db.user.name": "root", "db.lines": "a\nb\n", "db.url": "jdbc",
		"copy.password": "hunter2", "self.again.again.end": "x", "0": "zero",
	} {
		if got, err := secret.YAMLKey([]byte(document), path); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]string{
		"db": "must have a single value", "list": "must have a single value", "db.null": "no key", "db.missing": "no key", "db.password.x": "no key",
		"": "must have a single value", ".": "no key", "self.again": "must have a single value",
	} {
		got, err := secret.YAMLKey([]byte(document), path)
		if got != "" || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %q, %v, want error %q", path, got, err, want)
		}
	}
}

func TestBrokenDocumentsAreNotQuoted(t *testing.T) {
	for _, broken := range []string{"", "hunter2", "hunter2: [", "a: *hunter2", "\thunter2", "{hunter2"} {
		_, yamlErr := secret.YAMLKey([]byte(broken), "a")
		_, jsonErr := secret.JSONKey([]byte(broken), "a")
		for _, err := range []error{yamlErr, jsonErr} {
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: got error %v", broken, err)
			}
		}
	}
}

func TestJSONValuesKeepTheirDigits(t *testing.T) {
	for key, want := range map[string]string{"a": "x\ny", "b": "12345678901234567890", "c": "true", "d": `{"e": 1}`, "": "empty"} {
		got, err := secret.JSONKey([]byte(`{"a": "x\ny", "b": 12345678901234567890, "c": true, "d": {"e": 1}, "f": null, "": "empty"}`), key)
		if got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", key, got, err, want)
		}
	}
	for _, key := range []string{"f", "g"} {
		if _, err := secret.JSONKey([]byte(`{"f": null}`), key); err == nil || !strings.Contains(err.Error(), "no key") {
			t.Errorf("%s: got error %v", key, err)
		}
	}
}

func TestBase64MayHaveLineBreaks(t *testing.T) {
	for text, want := range map[string]string{"aHVudGVyMg==": "hunter2", "aHVudGVyMg": "hunter2", "aHVu\ndGVy\nMg==\n": "hunter2", "": ""} {
		if got, err := secret.DecodeBase64(text); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	if _, err := secret.DecodeBase64("hunter2!"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got error %v", err)
	}
}
