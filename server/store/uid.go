package store

import (
	"bytes"
	"encoding/hex"
)

// packUID writes a UUID in 16 bytes. Kubernetes promises no form of uids, so
// any other text is kept as it is behind a zero byte, or behind two where it
// would come to 16 bytes and be taken for a UUID.
func packUID(uid string) []byte {
	if packed, ok := packUUID(uid); ok {
		return packed
	}
	if uid == "" {
		return []byte{}
	}
	packed := append([]byte{0}, uid...)
	if len(packed) == 16 {
		packed = append([]byte{0}, packed...)
	}
	return packed
}

func packUUID(uid string) ([]byte, bool) {
	if len(uid) != 36 || uid[8] != '-' || uid[13] != '-' || uid[18] != '-' || uid[23] != '-' {
		return nil, false
	}
	var digits [32]byte
	n := 0
	for i := range len(uid) {
		switch c := uid[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'f': // in capitals it would come back changed
			digits[n] = c
			n++
		default:
			return nil, false
		}
	}
	packed := make([]byte, 16)
	_, err := hex.Decode(packed, digits[:n])
	return packed, err == nil
}

func unpackUID(packed []byte) string {
	if len(packed) != 16 {
		return string(bytes.TrimLeft(packed, "\x00"))
	}
	var uid [36]byte
	hex.Encode(uid[:8], packed[:4])
	uid[8] = '-'
	hex.Encode(uid[9:13], packed[4:6])
	uid[13] = '-'
	hex.Encode(uid[14:18], packed[6:8])
	uid[18] = '-'
	hex.Encode(uid[19:23], packed[8:10])
	uid[23] = '-'
	hex.Encode(uid[24:], packed[10:])
	return string(uid[:])
}
