package client_test

import (
	"strings"
	"testing"

	"github.com/vedette-io/vedette/internal/client"
	"github.com/vedette-io/vedette/internal/keypair"
)

// TestErrorsMaskAddresses checks that no error repeats what an address may hold besides its host and path.
func TestErrorsMaskAddresses(t *testing.T) {
	for _, server := range []string{
		"http://h/?sig=hunter2", "h?sig=hunter2", "http://h#hunter2", "http://me:hunter2@h/?x", "http://hunter2@h:port", "ftp://me:hunter2@h", "//hunter2@h",
		"http://h/?sig=hunter2@h", "http://[::1?sig=hunter2", "http://me:hunter2@h/\x7f", "http://h/?a=b#hunter2", "?hunter2", "http://hunter2@",
		"http:/me:hunter2@h", "http://me/hunter2@h",
	} {
		_, err := client.NewWithOptions(client.Options{Server: server})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error without the secret", server, err)
		}
	}
	_, err := client.NewWithOptions(client.Options{Server: "http://me:hunter2@h", TLS: keypair.ClientTLS{CAFile: "file"}})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want an error without the password", err)
	}
}
