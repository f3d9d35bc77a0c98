package codec

import (
	"bytes"
	"encoding/hex"
)

// PackUID returns a uid as it is stored: a UUID in 16 bytes. Kubernetes guarantees no format of
// uids, so any other text is stored behind a zero byte, or behind two if it would
// otherwise have 16 bytes and be read as a UUID.
func PackUID(uid string) []byte {
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
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'f': // upper case would be read back as lower case
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

// UnpackUID undoes PackUID.
func UnpackUID(packed []byte) string {
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
