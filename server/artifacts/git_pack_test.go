package artifacts

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// emptyBlobPack is a pack with one empty file, as git makes it.
const emptyBlobPack = "5041434b000000020000000130789c03000000000139d57a8d0a7acdd70fd1fa7d51be2e8af6d9a65a"

func FuzzCheckPack(f *testing.F) {
	valid, err := hex.DecodeString(emptyBlobPack)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{valid, valid[:14], []byte("PACK"), []byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"), nil} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pack []byte) {
		_, _ = checkPack(t.Context(), bytes.NewReader(pack), packLimits{bytes: 1 << 20, objectBytes: 1 << 10})
	})
}

func TestInvalidPacksAreRejected(t *testing.T) {
	valid, _ := hex.DecodeString(emptyBlobPack)
	tooMany := append([]byte(nil), valid...)
	tooMany[8] = 0xff // the number of objects
	for _, tt := range []struct {
		name  string
		pack  []byte
		valid bool
	}{
		{"an empty file", valid, true},
		{"nothing", nil, false},
		{"a header", valid[:12], false},
		{"more objects than Vedette accepts", tooMany, false},
		{"no pack", []byte("<html>"), false},
	} {
		_, err := checkPack(t.Context(), bytes.NewReader(tt.pack), packLimits{bytes: 1 << 20, objectBytes: 1 << 10})
		if (err == nil) != tt.valid {
			t.Errorf("%s: got %v, want valid %t", tt.name, err, tt.valid)
		}
	}
}
