package node

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// podImage is the image of the program pod. containerd never asks a registry for it, because it is there.
const podImage = "localhost/pod:1"

// PodImage is an image that each node has. Its program is test/node/pod.
const PodImage = podImage

// descriptor is one of the OCI image specification.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// writeImage writes an OCI layout with an image that consists of one program, as one file.
func writeImage(target, program, reference string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the program of an image: %w", err)
	}
	layer, err := tarOf(map[string][]byte{"pod": content}, 0o755)
	if err != nil {
		return err
	}
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	add := func(kind string, content []byte) descriptor {
		digest := fmt.Sprintf("%x", sha256.Sum256(content))
		files["blobs/sha256/"+digest] = content
		return descriptor{MediaType: "application/vnd.oci.image." + kind, Digest: "sha256:" + digest, Size: len(content)}
	}
	layers := []descriptor{add("layer.v1.tar", layer)}
	config := add("config.v1+json", encode(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH,
		"config": map[string]any{"Entrypoint": []string{"/pod"}, "User": "65532:65532"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layers[0].Digest}},
	}))
	manifest := add("manifest.v1+json", encode(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": config, "layers": layers}))
	manifest.Annotations = map[string]string{"io.containerd.image.name": reference}
	files["index.json"] = encode(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})
	archive, err := tarOf(files, 0o644)
	if err != nil {
		return err
	}
	if err := os.WriteFile(target, archive, 0o600); err != nil {
		return fmt.Errorf("write an image: %w", err)
	}
	return nil
}

// encode encodes values that have a form in JSON.
func encode(value any) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return encoded
}

func tarOf(files map[string][]byte, mode int64) ([]byte, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, content := range files {
		header := &tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("write an archive: %w", err)
		}
		if _, err := w.Write(content); err != nil {
			return nil, fmt.Errorf("write an archive: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write an archive: %w", err)
	}
	return archive.Bytes(), nil
}
