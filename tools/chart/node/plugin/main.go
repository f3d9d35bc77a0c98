// Plugin prints credentials, as the programs do that kubeconfigs (exec) and tokenCommand name.
//
//	plugin NAME
//
// It prints the token in the environment variable TOKEN, which expires after a few seconds. While the file NAME in /tmp says "fail" or
// "hang", it does that.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lifetime is short, so that the program soon runs again.
const lifetime = 15 * time.Second

func main() {
	mode, _ := os.ReadFile(filepath.Join("/tmp", os.Args[1])) // usually there is none
	switch string(mode) {
	case "fail":
		fmt.Fprintln(os.Stderr, "the session has ended: log in again")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Hour)
	}
	fmt.Printf(`{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "token": %q, "status": {"token": %[1]q, "expirationTimestamp": %q}}`,
		os.Getenv("TOKEN"), time.Now().Add(lifetime).UTC().Format(time.RFC3339))
}
