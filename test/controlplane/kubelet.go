//go:build unix

package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"time"
)

// kwokConfig returns the stages, and makes one file the log of every container. kwok is the kubelet
// that the API server asks for logs.
func (p *Plane) kwokConfig() []byte {
	return fmt.Appendf(nil, `%s---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata:
  name: all
spec:
  logs:
  - logsFile: %q
`, stages, p.podLog())
}

func (p *Plane) podLog() string { return p.path("pods.log") }

// AppendLog adds lines to the log that all containers share. Clients that follow a log receive
// them.
func (p *Plane) AppendLog(lines ...string) error {
	file, err := os.OpenFile(p.podLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("append to the log of Pods: %w", err)
	}
	defer file.Close()
	var text strings.Builder
	for _, line := range lines { // format of a container runtime
		fmt.Fprintf(&text, "%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), line)
	}
	if _, err := file.WriteString(text.String()); err != nil {
		return fmt.Errorf("append to the log of Pods: %w", err)
	}
	return file.Close()
}

// findFreePort returns a free port for a program that cannot share one. It is below the ports that
// the kernel uses for outgoing connections, so that until the program binds it only a program that
// wants the same port can take it.
func findFreePort() (int, error) {
	const low, high = 20_000, 32_000
	var err error
	for range 100 {
		number := low + rand.IntN(high-low)
		var listener net.Listener
		listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", number))
		if err == nil {
			return number, listener.Close()
		}
	}
	return 0, fmt.Errorf("find a free port for the kubelets: %w", err)
}
