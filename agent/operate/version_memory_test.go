//go:build linux

package operate_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vedette-io/vedette"
	"github.com/vedette-io/vedette/agent/kube"
	"github.com/vedette-io/vedette/agent/operate"
)

// The environment of a child of TestVersionLeavesNoSecretInMemory.
const (
	childManifest   = "VEDETTE_TEST_VERSION_OF"
	childKubeconfig = "VEDETTE_TEST_KUBECONFIG"
)

// runVersionChild requests the version of a manifest, prints the outcome, and waits until standard input
// ends.
func runVersionChild(manifest, kubeconfig string) {
	c, err := kube.Connect(kube.Access{KubeconfigFile: kubeconfig}, kube.Options{WipeTLSBuffers: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	op, err := operate.New(c, operate.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	out := op.Execute(context.Background(), vedette.Operation{Args: vedette.VersionArgs{Manifest: []byte(manifest)}})
	fmt.Println(out.State, string(out.Result), out.Message)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestVersionLeavesNoSecretInMemory reads the memory of a process that compared a manifest with Secrets
// that kubectl applied, whose data is in an annotation. With ConfigMaps it checks that the search finds
// the text.
func TestVersionLeavesNoSecretInMemory(t *testing.T) {
	b := newTestbed(t, operate.Config{})
	canary := "canary-" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-in-a-coal-mine"
	for kind, wantFound := range map[string]bool{"Secret": false, "ConfigMap": true} {
		manifest := func(password string) object {
			return object{"apiVersion": "v1", "kind": kind, "metadata": object{"name": "s", "namespace": b.namespace}, "data": object{"password": password}}
		}
		for i := range 60 {
			o := b.versionedManifest(manifest(""), i)
			applied := manifest(strings.Repeat(canary+" \" ", 1+i*i%700))
			o["metadata"].(object)["annotations"].(object)["kubectl.kubernetes.io/last-applied-configuration"] = string(encode(t, applied))
			must(t, plane.Create(t.Context(), b.path(core, strings.ToLower(kind)+"s", ""), o))
		}
		n, scanned := countInChildMemory(t, string(encode(t, manifest("another"))), canary)
		t.Logf("%s: found %d times in %d MiB", kind, n, scanned>>20)
		// The scheduler saves vector registers, which can't be wiped: see docs/decisions/0051.
		if registers := runtime.NumCPU() * 1024 / len(canary); wantFound != (n > registers) {
			t.Errorf("%s: found %d times, want more than %d: %v", kind, n, registers, wantFound)
		}
		if scanned < 5<<20 {
			t.Errorf("searched only %d bytes", scanned)
		}
	}
}

// countInChildMemory has a child request the version of a manifest, and counts a text in its memory.
func countInChildMemory(t *testing.T, manifest, text string) (n, scanned int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childManifest+"="+manifest, childKubeconfig+"="+plane.Kubeconfig())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() {
		in.Close()
		must(t, cmd.Wait())
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), `done {"number":60,"exists":false,"latest":"s-v059"}`) {
		t.Fatalf("child process: got %q", lines.Text())
	}
	return searchMemory(t, cmd.Process.Pid, text)
}

// searchMemory counts a text in all writable memory of a process.
func searchMemory(t *testing.T, pid int, text string) (n, scanned int) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	must(t, err)
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	must(t, err)
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") {
			continue
		}
		const step = 16 << 20
		for at := from; at < to; at += step {
			chunk := make([]byte, min(to-at+int64(len(text)), step+int64(len(text))))
			got, _ := mem.ReadAt(chunk, at) // untouched parts of a mapping can't be read
			n += bytes.Count(chunk[:got], []byte(text))
			scanned += got
		}
	}
	return n, scanned
}
