package journey

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/vedette-io/vedette/agent"
	"github.com/vedette-io/vedette/agent/redact"
	"github.com/vedette-io/vedette/agent/watch"
	"github.com/vedette-io/vedette/test/logbuffer"
	"github.com/vedette-io/vedette/test/programs"
	"github.com/vedette-io/vedette/wire"
)

// createSecret creates a Secret with a canary in its data and, as after kubectl apply, in an
// annotation.
func createSecret(t *testing.T, name, canary string) {
	t.Helper()
	applied := fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"namespace":"default"},"data":{"p":%q},"stringData":{"password":%q}}`,
		name, base64.StdEncoding.EncodeToString([]byte(canary)), canary)
	err := plane.Create(t.Context(), "/api/v1/namespaces/default/secrets", map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": name, "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": applied, "moniker.spinnaker.io/application": "shop-of-the-secret", "example.com/note": canary}},
		"stringData": map[string]any{"password": canary}})
	if err != nil {
		t.Fatal(err)
	}
}

// messageTap copies everything that an agent sends.
type messageTap struct {
	messages logbuffer.Buffer // length-prefixed messages, as sent
}

func (p *messageTap) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := streamer(ctx, desc, conn, method, opts...)
	return &tappedStream{stream, p}, err
}

type tappedStream struct {
	grpc.ClientStream
	tap *messageTap
}

func (s *tappedStream) SendMsg(m any) error {
	b, err := proto.Marshal(m.(proto.Message))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(&s.tap.messages, "%d\n%s", len(b), b); err != nil {
		return err
	}
	return s.ClientStream.SendMsg(m)
}

// decoded returns all messages, with their records decompressed.
func (p *messageTap) decoded(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	in := bufio.NewReader(strings.NewReader(p.messages.String()))
	reader := wire.NewReader(func() (*wire.Data, error) {
		for {
			m, err := nextMessage(in)
			if err != nil {
				return nil, err
			}
			if m.GetData() != nil {
				return m.GetData(), nil
			}
			fmt.Fprintln(&out, m)
		}
	}, new(wire.DecoderPool), nil)
	records := 0
	for {
		var rec wire.Record
		if _, err := reader.Next(&rec); err != nil {
			break
		}
		records++
		b, err := proto.Marshal(&rec)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	if records == 0 {
		t.Fatal("got no records")
	}
	return out.Bytes()
}

func nextMessage(in *bufio.Reader) (*wire.AgentMessage, error) {
	var size int
	if _, err := fmt.Fscanf(in, "%d\n", &size); err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, err
	}
	var m wire.AgentMessage
	return &m, proto.Unmarshal(b, &m)
}

// TestSecretsAreNotOnTheWire checks every message that an agent sends, with records decompressed:
// it must contain the Secret, but none of its data.
func TestSecretsAreNotOnTheWire(t *testing.T) {
	const canary = "c4n4ry-on-the-wire"
	createSecret(t, "wire", canary)
	var p messageTap
	h := startWithDialOptions(t, agent.Account{Name: "one", Selection: watch.Selection{Kinds: []string{"Secret"}}}, redact.Config{},
		grpc.WithStreamInterceptor(p.intercept))
	h.awaitLive(1)
	h.stopAgent()
	sent := p.decoded(t)
	if !bytes.Contains(sent, []byte("shop-of-the-secret")) {
		t.Error("the Secret's metadata was not sent")
	}
	for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
		if bytes.Contains(sent, []byte(form)) {
			t.Errorf("the agent sent %q", form)
		}
	}
}

// TestSecretsAreNotInMemory runs the agent program with a hundred Secrets, and searches all of its
// memory. The program is built without the race detector, which keeps copies.
func TestSecretsAreNotInMemory(t *testing.T) {
	const canary = "c4n4ry-in-memory"
	for i := range 100 {
		createSecret(t, fmt.Sprintf("memory-%d", i), canary)
	}
	h := start(t, agent.Account{Name: "other", Selection: watch.Selection{Kinds: []string{"Namespace"}}}, redact.Config{})
	dir := t.TempDir()
	program := filepath.Join(dir, "vedette-agent")
	if err := programs.Build(t.Context(), dir, "vedette-agent"); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("clouddriver:\n  grpc: %s\n  insecure: true\nserver:\n  host: 127.0.0.1\n  port: 0\nkubernetes:\n  wipeTLSBuffers: true\n  accounts:\n    - name: one\n      kubeconfigFile: %s\n      kinds: [secret]\n",
		h.srv.GRPC(), plane.Kubeconfig())
	file := filepath.Join(dir, "armory-agent.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config", file)
	cmd.Stdout, cmd.Stderr = h.log, h.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	h.await("the Secrets of the agent", func() bool {
		var list struct{ Total int }
		return h.get("/vedette/v1/objects?account=one&kind=secrets", &list) && list.Total >= 100
	})
	found, control := searchMemory(t, cmd.Process.Pid, canary), searchMemory(t, cmd.Process.Pid, "memory-99")
	if control == 0 {
		t.Error("the search does not find the Secret's name, so it proves nothing")
	}
	// The Go runtime may keep some copies, see docs/decisions/0051.
	if most := runtime.NumCPU() * 1024 / len(canary); found > most {
		t.Errorf("got the canary %d times in the agent's memory", found)
	}
	t.Logf("%d canaries, %d names", found, control)
}

// searchMemory counts a text in all writable memory of a process.
func searchMemory(t *testing.T, pid int, text string) int {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	count := 0
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") {
			continue
		}
		const piece = 16 << 20
		for at := from; at < to; at += piece {
			b := make([]byte, min(piece+int64(len(text)), to-at))
			n, _ := mem.ReadAt(b, at) // pages that were never touched cannot be read
			count += bytes.Count(b[:n], []byte(text))
		}
	}
	return count
}
