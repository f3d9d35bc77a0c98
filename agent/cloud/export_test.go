package cloud

import (
	"net/http"
	"testing"
)

// UseServices sends the requests of all sources over a transport for the time of a test, which must not run in parallel with others.
func UseServices(t *testing.T, transport http.RoundTripper) {
	t.Helper()
	before := services
	services = transport
	t.Cleanup(func() { services = before })
}

const Timeout = timeout
