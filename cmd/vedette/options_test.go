package main

import (
	"strings"
	"testing"
)

func TestInvalidOptionsAreExplained(t *testing.T) {
	for args, want := range map[string]string{
		"get pods -A -n shop":                  "exclude each other",
		"get pods --chunk-size -1":             "must be 0 or more",
		"get":                                  "requires at least 1 arg",
		"get pods --server :::":                "is not a URL",
		"get pods --server ftp://x":            "is not a URL",
		"get pods --server http://127.0.0.1:1": "nothing listens at http://127.0.0.1:1 (",
	} {
		_, _, err := runCLI(t.Context(), strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", args, err, want)
		}
	}
	_, _, err := runCLI(t.Context(), "get", "pods", "--server", "http://127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "start a server with `vedette up`") {
		t.Errorf("the error does not say how to start a server: %v", err)
	}
}
