package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// The functions below encode fields by the rules of proto3, which leaves out empty and
// zero fields.

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

// The field numbers of an entry of a map.
const (
	mapKey   = protowire.Number(1)
	mapValue = protowire.Number(2)
)

// appendMap encodes entries in the order of their keys, because objects of a kind
// compress better if they look alike.
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
