package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// What follows writes fields as proto3 has them: those that are empty or zero
// are left out.

func appendBytes[T string | []byte](b []byte, field protowire.Number, value T) []byte {
	if len(value) == 0 {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(value)))
	return append(b, value...)
}

func sizeBytes[T string | []byte](field protowire.Number, value T) int {
	if len(value) == 0 {
		return 0
	}
	return protowire.SizeTag(field) + protowire.SizeBytes(len(value))
}

func appendVarint(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func sizeVarint(field protowire.Number, n uint64) int {
	if n == 0 {
		return 0
	}
	return protowire.SizeTag(field) + protowire.SizeVarint(n)
}

// Entries of a map are messages with the key as field 1 and the value as field 2.
const (
	mapKey   = protowire.Number(1)
	mapValue = protowire.Number(2)
)

// appendMap writes entries in the order of their keys, so that objects of a kind
// look alike to the compression.
func appendMap(b []byte, field protowire.Number, m map[string]string) []byte {
	var buf [24]string
	keys := buf[:0]
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := m[key]
		b = protowire.AppendTag(b, field, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(sizeBytes(mapKey, key)+sizeBytes(mapValue, value)))
		b = appendBytes(b, mapKey, key)
		b = appendBytes(b, mapValue, value)
	}
	return b
}

func sizeMap(field protowire.Number, m map[string]string) (size int) {
	for key, value := range m {
		size += protowire.SizeTag(field) + protowire.SizeBytes(sizeBytes(mapKey, key)+sizeBytes(mapValue, value))
	}
	return size
}
