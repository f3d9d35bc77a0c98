//go:build unix

package controlplane

import (
	"fmt"
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
