// Command build builds Prometheus for tests, unless it is in the cache, and prints the paths of its
// programs.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/vedette-io/vedette/test/prometheus"
)

func main() {
	b, err := prometheus.Build(context.Background(), os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(b.Prometheus)
	fmt.Println(b.Promtool)
}
