//go:build linux

package watch_test

import (
	"encoding/base64"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSecretDataIsWipedFromMemory searches the memory of a process that watches Secrets,
// with WipeTLSBuffers, whose data is also in kubectl's annotation. A search for the data of
// ConfigMaps shows that the search works.
func TestSecretDataIsWipedFromMemory(t *testing.T) {
	p := newControlPlane(t)
	canary := "canary-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-in-a-coal-mine"
	newObject := func(i int) object {
		data := object{"password": base64.StdEncoding.EncodeToString([]byte(canary))}
		padding := strings.Repeat(canary+" ", 1+i*i%700)
		return object{"metadata": object{"name": fmt.Sprintf("s%d", i), "annotations": object{
			"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"password":"` + padding + `"}}`}}, "data": data}
	}
	for kind, wantFound := range map[string]bool{"secret": false, "configmap": true} {
		path := "/api/v1/namespaces/default/" + kind + "s"
		for i := range 60 {
			must(t, p.Create(t.Context(), path, newObject(i)))
		}
		child := startChild(t, p.Kubeconfig(), kind, 1)
		child.await(t, "live")
		for i := range 30 {
			must(t, p.Patch(t.Context(), fmt.Sprintf("%s/s%d", path, i), object{"metadata": object{"labels": object{"round": "2"}}}))
		}
		child.await(t, "upserts 30")
		// Create one more object without the canary, because the last event is still in a
		// buffer.
		must(t, p.Create(t.Context(), path, object{"metadata": object{"name": "plain"}}))
		child.await(t, "upserts 31")
		n, scanned := child.countInMemory(t, canary)
		t.Logf("%s: found %d times in %d MiB", kind, n, scanned>>20)
		// The scheduler saves vector registers, which cannot be wiped: see kube's secretTransport.
		registers := runtime.NumCPU() * 1024 / len(canary)
		if wantFound != (n > registers) {
			t.Errorf("%s: got %d canaries, want more than %d: %v", kind, n, registers, wantFound)
		}
		if scanned < 10<<20 {
			t.Errorf("got %d searched bytes, want at least %d", scanned, 10<<20)
		}
		child.stdin.Close()
		child.await(t, "ended")
	}
}
