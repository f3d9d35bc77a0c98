package main

import (
	"bufio"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	checksumFile  = "SHA256SUMS"
	signatureFile = checksumFile + ".sig"
)

func readPrivateKey(path string) (*ecdsa.PrivateKey, error) {
	block, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("private key in %s: %w", path, err)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("private key in %s is a %T: one of ECDSA is needed", path, key)
	}
	return private, nil
}

func readPublicKey(path string) (*ecdsa.PublicKey, error) {
	block, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("public key in %s: %w", path, err)
	}
	public, ok := key.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("public key in %s is a %T: one of ECDSA is needed", path, key)
	}
	return public, nil
}

func readPEM(path string) (*pem.Block, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "EC PARAMETERS" {
			return block, nil
		}
	}
	return nil, fmt.Errorf("file %s has no key in PEM", path)
}

// sign returns the signature of content as cosign and openssl write it, in base64. It is the same each time: without a
// source of random numbers, the nonce follows from key and content (RFC 6979).
func sign(key *ecdsa.PrivateKey, content []byte) (string, error) {
	digest := sha256.Sum256(content)
	signature, err := key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(signature), nil
}

// signImage adds cosign's signature of an image to its layout. Cosign's format is a manifest tagged by the digest, with the
// signed statement as its layer.
func (b *build) signImage(path layout.Path, name string, index v1.ImageIndex) error {
	key, err := readPrivateKey(b.key)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	statement, err := json.Marshal(map[string]any{"critical": map[string]any{
		"identity": map[string]string{"docker-reference": "vedette-io/" + name},
		"image":    map[string]string{"docker-manifest-digest": digest.String()},
		"type":     "cosign container image signature"}, "optional": nil})
	if err != nil {
		return err
	}
	signature, err := sign(key, statement)
	if err != nil {
		return err
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: static.NewLayer(statement, "application/vnd.dev.cosign.simplesigning.v1+json"),
			History: v1.History{Created: v1.Time{Time: b.time}}, Annotations: map[string]string{"dev.cosignproject.cosign/signature": signature}})
	if err != nil {
		return err
	}
	image, err = mutate.CreatedAt(image, v1.Time{Time: b.time})
	if err != nil {
		return err
	}
	return path.AppendImage(image, layout.WithAnnotations(map[string]string{refName: signatureTag(digest)}))
}

// signatureTag is where cosign looks for an image's signature.
func signatureTag(digest v1.Hash) string { return digest.Algorithm + "-" + digest.Hex + ".sig" }

// released returns the names of the files that are handed out, in order.
func released(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() && !slices.Contains([]string{checksumFile, signatureFile}, entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// verify checks a directory against its checksums, and these against their signature.
func verify(dir, keyPath string) error {
	sums, err := os.ReadFile(filepath.Join(dir, checksumFile))
	if err != nil {
		return err
	}
	key, err := readPublicKey(keyPath)
	if err != nil {
		return err
	}
	encoded, err := os.ReadFile(filepath.Join(dir, signatureFile))
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(encoded)))
	if err != nil {
		return fmt.Errorf("%s is not base64: %w", signatureFile, err)
	}
	digest := sha256.Sum256(sums)
	if !ecdsa.VerifyASN1(key, digest[:], signature) {
		return fmt.Errorf("%s does not come from whoever has the private key of %s", checksumFile, keyPath)
	}
	listed := map[string]string{}
	for scanner := bufio.NewScanner(strings.NewReader(string(sums))); scanner.Scan(); {
		sum, name, _ := strings.Cut(scanner.Text(), "  ")
		listed[name] = sum
	}
	names, err := released(dir)
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range names {
		sum, err := fileDigest(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		switch listed[name] {
		case "":
			problems = append(problems, fmt.Errorf("%s is not listed in %s", name, checksumFile))
		case sum:
		default:
			problems = append(problems, fmt.Errorf("%s has changed", name))
		}
		delete(listed, name)
	}
	for name := range listed {
		problems = append(problems, fmt.Errorf("%s is missing", name))
	}
	return errors.Join(problems...)
}
