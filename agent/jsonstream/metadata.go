package jsonstream

import "fmt"

// OnlyMetadata turns a PartialObjectMetadata, in place, into an object with the
// given kind and apiVersion and the same metadata. TypeMeta has the form that List
// describes. It fails closed: if raw has any other member, the API server ignored the
// Accept header, and nothing of the object is returned.
func OnlyMetadata(raw, typeMeta []byte) ([]byte, error) {
	s := splitBytes(raw)
	var metadata extent
	kind := ""
	err := s.object(func(key string) (err error) {
		switch key {
		case "kind":
			var b []byte
			b, err = s.text()
			kind = string(b)
			return err
		case "apiVersion":
			return s.skip()
		case "metadata":
			metadata, err = s.value()
			return err
		}
		return fmt.Errorf("%w: an object with more than the requested metadata", ErrMalformed)
	})
	if err != nil {
		return nil, err
	}
	if kind != "PartialObjectMetadata" || metadata.to == 0 {
		return nil, fmt.Errorf("%w: got kind %.40q, want PartialObjectMetadata", ErrMalformed, kind)
	}
	return wrapMetadata(raw[s.start:], metadata, typeMeta), nil // extents count from start
}

// wrapMetadata writes typeMeta in front of the metadata and a brace after it. It
// copies only if the name of the kind is so long that typeMeta does not fit.
func wrapMetadata(raw []byte, metadata extent, typeMeta []byte) []byte {
	const name = `"metadata":`
	body := raw[metadata.from:metadata.to]
	at := metadata.from - len(typeMeta) - len(name)
	if at < 0 || metadata.to >= len(raw) {
		out := append(append([]byte(nil), typeMeta...), name...)
		return append(append(out, body...), '}')
	}
	copy(raw[at:], typeMeta)
	copy(raw[at+len(typeMeta):], name)
	raw[metadata.to] = '}'
	return raw[at : metadata.to+1]
}
