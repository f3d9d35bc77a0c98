package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// What follows writes fields as proto3 has them: those that are empty or zero
// are left out.

func appendText[T string | []byte](b []byte, field protowire.Number, text T) []byte {
	if len(text) == 0 {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(text)))
	return append(b, text...)
}

func sizeText[T string | []byte](field protowire.Number, text T) int {
	if len(text) == 0 {
		return 0
	}
	return protowire.SizeTag(field) + protowire.SizeBytes(len(text))
}

func appendNumber(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func sizeNumber(field protowire.Number, n uint64) int {
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
	var room [24]string
	keys := room[:0]
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := m[key]
		b = protowire.AppendTag(b, field, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(sizeText(mapKey, key)+sizeText(mapValue, value)))
		b = appendText(b, mapKey, key)
		b = appendText(b, mapValue, value)
	}
	return b
}

func sizeMap(field protowire.Number, m map[string]string) (size int) {
	for key, value := range m {
		size += protowire.SizeTag(field) + protowire.SizeBytes(sizeText(mapKey, key)+sizeText(mapValue, value))
	}
	return size
}
