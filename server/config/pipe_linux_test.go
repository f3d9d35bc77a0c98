package config

import (
	"fmt"
	"os"
	"testing"
)

// TestFileWithSecretsIsReadOnce checks that a configuration from a shell's <(command), which can be read only once, may refer to
// secrets.
func TestFileWithSecretsIsReadOnce(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := writer.WriteString("server: {port: 7, adminToken: 'encrypted:noop!sixteen-bytes-or-more'}\n"); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	c, err := Load(fmt.Sprintf("/dev/fd/%d", reader.Fd()), nil)
	if err != nil || c.Server.Port != 7 || c.Server.AdminToken.Reveal() != "sixteen-bytes-or-more" {
		t.Fatalf("got %+v, %v", c, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
