package ports

import (
	"fmt"
	"testing"
)

// Unused returns an address of this machine at which nothing listens until this process ends. The
// port of a listener that was closed would not do: the kernel may give it to the next one.
func Unused(t testing.TB) string {
	t.Helper()
	port, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}
