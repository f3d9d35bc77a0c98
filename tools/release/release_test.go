package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// A release is one that all tests read.
type release struct{ dir, privateKey, publicKey string }

var (
	tempDir string
	once    = sync.OnceValues(func() (release, error) { return newRelease(filepath.Join(tempDir, "dist")) })
)

func TestMain(m *testing.M) {
	var err error
	if tempDir, err = os.MkdirTemp("", "vedette-release"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(tempDir)
	os.Exit(code)
}

func built(t *testing.T) release {
	t.Helper()
	r, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// newRelease builds for this machine's architecture, with a new key.
func newRelease(out string) (release, error) {
	r := release{out, filepath.Join(tempDir, "private.pem"), filepath.Join(tempDir, "public.pem")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return r, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return r, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return r, err
	}
	for path, block := range map[string]*pem.Block{
		r.privateKey: {Type: "PRIVATE KEY", Bytes: private}, r.publicKey: {Type: "PUBLIC KEY", Bytes: public}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			return r, err
		}
	}
	return r, newBuild(out, r.privateKey).run(context.Background())
}

func newBuild(out, key string) *build {
	return &build{version: "v0.1.0-rc.1", root: "../..", out: out, key: key, platforms: []string{"linux/" + runtime.GOARCH},
		level: gzip.BestSpeed, anyState: true}
}

// TestReleasesHaveEqualBytes checks that a release that is built again, elsewhere and at another time, is the same.
func TestReleasesHaveEqualBytes(t *testing.T) {
	r := built(t)
	again := filepath.Join(t.TempDir(), "elsewhere")
	if err := newBuild(again, r.privateKey).run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{checksumFile, signatureFile} {
		first, err := os.ReadFile(filepath.Join(r.dir, path))
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile(filepath.Join(again, path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("%s differs:\n%s\n%s", path, first, second)
		}
	}
}

// TestVerifyNamesEveryChange checks that a release is believed only whole and unchanged, and with the right key.
func TestVerifyNamesEveryChange(t *testing.T) {
	r := built(t)
	if err := verify(r.dir, r.publicKey); err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"changed": {func(dir string) error { return os.WriteFile(filepath.Join(dir, "krew_vedette.yaml"), nil, 0o600) }, "krew_vedette.yaml has changed"},
		"missing": {func(dir string) error { return os.Remove(filepath.Join(dir, "krew_vedette.yaml")) }, "krew_vedette.yaml is missing"},
		"added":   {func(dir string) error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o600) }, "new is not listed"},
		"other sums": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, checksumFile), []byte(strings.Repeat("0", 64)+"  vedette\n"), 0o600)
		}, "does not come from"},
		"no signature": {func(dir string) error { return os.Remove(filepath.Join(dir, signatureFile)) }, "no such file"},
		"bad signature": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, signatureFile), []byte("\xff"), 0o600)
		}, "is not base64"},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(r.dir)); err != nil {
				t.Fatal(err)
			}
			if err := test.change(dir); err != nil {
				t.Fatal(err)
			}
			if err := verify(dir, r.publicKey); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want it to say %q", err, test.want)
			}
		})
	}
}

// TestOpenSSLVerifiesChecksums runs the commands of the page, as users do who have none of our programs: on a release, and on what an attacker
// makes of it. Then no file may be called OK but those that are.
func TestOpenSSLVerifiesChecksums(t *testing.T) {
	r := built(t)
	page, err := os.ReadFile("../../docs/releases.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n(base64 -d .*?)```").FindStringSubmatch(string(page))
	if block == nil {
		t.Fatal("the page has no such commands")
	}
	const changed = "krew_vedette.yaml"
	write := func(dir, path string, content []byte) error {
		return os.WriteFile(filepath.Join(dir, path), content, 0o600)
	}
	for what, test := range map[string]struct {
		change func(dir string) error
		ok     bool
	}{
		"a release":      {func(string) error { return nil }, true},
		"a changed file": {func(dir string) error { return write(dir, changed, []byte("x")) }, false},
		"a changed file with its sum": {func(dir string) error {
			sum := sha256.Sum256([]byte("x"))
			return errors.Join(write(dir, changed, []byte("x")), write(dir, checksumFile, fmt.Appendf(nil, "%x  %s\n", sum, changed)))
		}, false},
		"no signature":         {func(dir string) error { return os.Remove(filepath.Join(dir, signatureFile)) }, false},
		"an empty signature":   {func(dir string) error { return write(dir, signatureFile, nil) }, false},
		"half a list of files": {func(dir string) error { return os.Truncate(filepath.Join(dir, checksumFile), 100) }, false},
		"another key": {func(dir string) error {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				return err
			}
			public, err := x509.MarshalPKIXPublicKey(key.Public())
			return errors.Join(err, write(dir, "public.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			public, err := os.ReadFile(r.publicKey)
			if err := errors.Join(err, os.CopyFS(dir, os.DirFS(r.dir)), write(dir, "public.pem", public), test.change(dir)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", block[1])
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if (err == nil) != test.ok || strings.Contains(string(out), changed+": OK") != test.ok {
				t.Errorf("got %v, want success: %t\n%s", err, test.ok, out)
			}
		})
	}
}

func command(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", program, err, out)
	}
	return string(out)
}

// TestPushedImages checks images as a registry has them: what runs, as whom, with what, and the signature where cosign looks for it.
func TestPushedImages(t *testing.T) {
	r := built(t)
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	if err := push(t.Context(), r.dir, host+"/vedette-io", true); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"vedette-server", "vedette-agent"} {
		t.Run(program, func(t *testing.T) {
			tag, err := name.NewTag(host + "/vedette-io/" + program + ":v0.1.0-rc.1")
			if err != nil {
				t.Fatal(err)
			}
			index, err := remote.Index(tag)
			if err != nil {
				t.Fatal(err)
			}
			checkSignature(t, r, tag, index)
			image, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
			if err != nil {
				t.Fatal(err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if got := config.Config.User; got != "65532:65532" {
				t.Errorf("it runs as %q, want a user without rights", got)
			}
			if got := config.Config.Entrypoint; !slices.Equal(got, []string{"/usr/bin/" + program}) {
				t.Errorf("it runs %q", got)
			}
			files := contents(t, image)
			checkAuthorities(t, files["etc/ssl/certs/ca-certificates.crt"])
			path := filepath.Join(t.TempDir(), program)
			if err := os.WriteFile(path, files["usr/bin/"+program], 0o700); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(command(t, path, "version")); got != "v0.1.0-rc.1" {
				t.Errorf("it says that it is version %q", got)
			}
			if !bytes.Contains(files["usr/share/doc/"+program+"/THIRD-PARTY-LICENSES"], []byte("google.golang.org/grpc")) {
				t.Error("the license of gRPC is missing")
			}
		})
	}
}

// TestArchivesHaveManPages checks that each program comes with its pages, with the date of the commit.
func TestArchivesHaveManPages(t *testing.T) {
	r := built(t)
	b := newBuild(t.TempDir(), "")
	if err := b.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for program, page := range map[string]string{
		"vedette": "man/man1/vedette-migrate-values.1", "vedette-agent": "man/man8/vedette-agent.8", "vedette-server": "man/man8/vedette-server.8"} {
		archive := filepath.Join(r.dir, fmt.Sprintf("%s_0.1.0-rc.1_linux_%s.tar.gz", program, runtime.GOARCH))
		text := command(t, "tar", "-xzOf", archive, page)
		if date := strings.ReplaceAll(b.time.Format("2006-01-02"), "-", `\-`); !strings.HasPrefix(text, ".TH ") || !strings.Contains(text, date) {
			t.Errorf("%s in %s: got %s, want a page of %s", page, archive, text, date)
		}
	}
}

// TestManifestsHaveDigests checks that the manifests run the images of the release, and no others.
func TestManifestsHaveDigests(t *testing.T) {
	r := built(t)
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	if err := push(t.Context(), r.dir, host, true); err != nil {
		t.Fatal(err)
	}
	for file, count := range map[string]int{"install.yaml": 2, "server.yaml": 1, "server-front.yaml": 1, "agent.yaml": 1} {
		text, err := os.ReadFile(filepath.Join(r.dir, file))
		if err != nil {
			t.Fatal(err)
		}
		images := regexp.MustCompile(`image: ghcr\.io/vedette-io/(\S+)`).FindAllStringSubmatch(string(text), -1)
		if len(images) != count {
			t.Errorf("%s has the images %v", file, images)
		}
		for _, image := range images {
			reference, err := name.NewDigest(host + "/" + image[1])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := remote.Index(reference); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		if !strings.Contains(string(text), "app.kubernetes.io/version: v0.1.0-rc.1\n") || strings.Contains(string(text), "v0.1.0\n") {
			t.Errorf("%s does not have the version of the release only", file)
		}
	}
}

var withHelm = flag.Bool("helm", false, "let Helm pull the chart; the first time, Helm is compiled for some minutes")

// TestHelmPullsTheChart lets Helm read the packed chart, as a file and from a registry.
func TestHelmPullsTheChart(t *testing.T) {
	if !*withHelm {
		t.Skip("make chart runs it")
	}
	dir := t.TempDir()
	b := newBuild(dir, "")
	if err := errors.Join(b.check(t.Context()), b.writeChart(t.Context())); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	if err := pushChart(t.Context(), filepath.Join(dir, b.chartFile()), host+"/charts/vedette", true); err != nil {
		t.Fatal(err)
	}
	helm := filepath.Join(dir, "helm")
	command(t, "go", "build", "-C", "../chart", "-o", helm, "helm.sh/helm/v4/cmd/helm")
	shown := command(t, helm, "show", "chart", "oci://"+host+"/charts/vedette", "--version", "0.1.0-rc.1", "--plain-http")
	for _, want := range []string{"version: 0.1.0-rc.1\n", "appVersion: v0.1.0-rc.1\n", `artifacthub.io/prerelease: "true"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("got %s, want %q", shown, want)
		}
	}
	rendered := command(t, helm, "template", filepath.Join(dir, b.chartFile()), "--set", "agent.account.name=prod")
	for _, want := range []string{"vedette-server:v0.1.0-rc.1", "helm.sh/chart: vedette-0.1.0-rc.1", "kind: ClusterRole"} {
		if !strings.Contains(rendered, want) {
			t.Errorf("got %s, want %q", rendered, want)
		}
	}
}

// contents returns the files of an image by path.
func contents(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	r := mutate.Extract(image)
	defer r.Close()
	for reader := tar.NewReader(r); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

func checkAuthorities(t *testing.T, file []byte) {
	t.Helper()
	count := 0
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Fatal(err)
		}
		count++
	}
	if count < 100 {
		t.Errorf("there are %d authorities, want those of the web", count)
	}
}

func checkSignature(t *testing.T, r release, tag name.Tag, index v1.ImageIndex) {
	t.Helper()
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(tag.Context().Tag(signatureTag(digest)))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	layer := manifest.Layers[0]
	signature, err := base64.StdEncoding.DecodeString(layer.Annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		t.Fatal(err)
	}
	blob, err := remote.Layer(tag.Context().Digest(layer.Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := blob.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	statement, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := readPublicKey(r.publicKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(statement)
	if !ecdsa.VerifyASN1(key, sum[:], signature) {
		t.Error("the signature is not that of the statement")
	}
	var content struct {
		Critical struct {
			Image map[string]string
		}
	}
	if err := json.Unmarshal(statement, &content); err != nil {
		t.Fatal(err)
	}
	if got := content.Critical.Image["docker-manifest-digest"]; got != digest.String() {
		t.Errorf("the statement is about %s, want %s", got, digest)
	}
}

// TestMaterialsNameModules checks that the bill of materials lists what the program contains.
func TestMaterialsNameModules(t *testing.T) {
	r := built(t)
	content, err := os.ReadFile(filepath.Join(r.dir, fmt.Sprintf("vedette-agent_0.1.0-rc.1_linux_%s.cdx.json", runtime.GOARCH)))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(content, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" {
		t.Errorf("got the format %q", bom.BOMFormat)
	}
	for _, module := range []string{"std", "k8s.io/client-go", "google.golang.org/grpc"} {
		i := slices.IndexFunc(bom.Components, func(c struct{ Name, Version, PURL string }) bool { return c.Name == module })
		if i < 0 {
			t.Errorf("%s is missing", module)
		} else if c := bom.Components[i]; c.PURL != "pkg:golang/"+module+"@"+c.Version {
			t.Errorf("%s has the URL %q", module, c.PURL)
		}
	}
}

// TestBadInputIsRefusedAtOnce checks that nothing is built for minutes before a mistake is told.
func TestBadInputIsRefusedAtOnce(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "say what to do"},
		{[]string{"publish"}, `unknown command "publish"`},
		{[]string{"build"}, `version ""`},
		{[]string{"build", "--version", "0.1.0"}, "with a v before it"},
		{[]string{"build", "--version", "v0.1"}, "semantic versioning"},
		{[]string{"build", "--version", "v0.1.0+dirty"}, "build metadata"},
		{[]string{"build", "--version", "v0.1.0", "--platforms", "linux/386"}, `unknown platform "linux/386"`},
		{[]string{"build", "--version", "v0.1.0", "--key", "/dev/null"}, "no key in PEM"},
		{[]string{"build", "--version", "v0.1.0", "--out", full}, "is not empty"},
		{[]string{"push", "--from", full, "localhost:1"}, "has no images"},
		{[]string{"push"}, "say where to push to"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			if err := run(t.Context(), test.args); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want it to say %q", err, test.want)
			}
		})
	}
}

// TestChangedCheckoutIsRefused checks that a release contains what its commit says.
func TestChangedCheckoutIsRefused(t *testing.T) {
	root := t.TempDir()
	for _, args := range [][]string{{"init", "--quiet"}, {"-c", "user.name=a", "-c", "user.email=a", "commit", "--quiet", "--allow-empty", "-m", "a"}} {
		command(t, "git", append([]string{"-C", root}, args...)...)
	}
	b := newBuild(filepath.Join(t.TempDir(), "dist"), "")
	b.root, b.anyState = root, false
	if err := b.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	tracked, ignored := filepath.Join(root, "old.go"), filepath.Join(root, ".gitignore")
	for path, content := range map[string]string{tracked: "package a", ignored: "/dist/\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		command(t, "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a"}, args...)...)
	}
	git("add", ".")
	git("commit", "--quiet", "-m", "b")
	if err := os.MkdirAll(filepath.Join(root, "dist", "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.check(t.Context()); err != nil {
		t.Errorf("with what the repository ignores: %v", err)
	}
	refused := func(what, want string) {
		t.Helper()
		if err := b.check(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that names %s", what, err, want)
		}
	}
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "elsewhere")) // as in hooks
	if err := os.WriteFile(filepath.Join(root, "new.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a new file", "new.go")
	os.Unsetenv("GIT_DIR")
	git("config", "status.showUntrackedFiles", "no")
	refused("a new file that git does not show", "new.go")
	exclude := filepath.Join(root, ".git", "info", "exclude")
	if err := errors.Join(os.MkdirAll(filepath.Dir(exclude), 0o700), os.WriteFile(exclude, []byte("new.go\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	refused("a new file that this clone ignores", "new.go")
	if err := errors.Join(os.Remove(filepath.Join(root, "new.go")), os.WriteFile(tracked, []byte("package b"), 0o600)); err != nil {
		t.Fatal(err)
	}
	refused("a changed file", "old.go")
	git("update-index", "--assume-unchanged", "old.go")
	refused("a changed file that git shall not look at", "old.go")
}

// TestSettingsOfGoDoNotCount checks that programs are the same whatever "go env -w" has written on a machine.
func TestSettingsOfGoDoNotCount(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(settings, []byte("GOFLAGS=-gcflags=all=-N\nGOFIPS140=latest\nGOAMD64=v3\nGOWORK=/go.work\nCGO_ENABLED=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"GOFLAGS", "GOFIPS140", "GOAMD64", "GOWORK", "CGO_ENABLED"} {
		t.Setenv(variable, "") // go takes an empty variable for one that is not set
	}
	t.Setenv("GOENV", settings)
	cmd := exec.CommandContext(t.Context(), "go", "env", "GOFLAGS", "GOFIPS140", "GOAMD64", "GOWORK", "CGO_ENABLED")
	cmd.Env = environment("GOOS=linux", "GOARCH=amd64")
	out, err := cmd.CombinedOutput()
	if want := "-mod=readonly\noff\nv1\noff\n0\n"; err != nil || string(out) != want {
		t.Errorf("got %v, %s, want %s", err, out, want)
	}
	t.Setenv("GOEXPERIMENT", "rangefunc")
	b := newBuild(filepath.Join(t.TempDir(), "dist"), "")
	if err := b.check(t.Context()); err == nil || !strings.Contains(err.Error(), "GOEXPERIMENT") {
		t.Errorf("got %v, want an error about GOEXPERIMENT", err)
	}
}

// TestOnlyImages checks that tests get images of a checkout with changes, without what takes most of the time.
func TestOnlyImages(t *testing.T) {
	out := filepath.Join(t.TempDir(), "images")
	if err := run(t.Context(), []string{"images", "--root", "../..", "--out", out, "--version", "v0.1.0", "--platforms", "linux/" + runtime.GOARCH}); err != nil {
		t.Fatal(err)
	}
	var names []string
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".cdx.json") {
			names = append(names, entry.Name())
		}
	}
	if want := []string{"bin", "vedette-agent_0.1.0.oci.tar", "vedette-server_0.1.0.oci.tar"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}
