package watch

import (
	"fmt"
)

// onlyMetadata makes, in place, an object of a feed that is asked for as
// metadata only: the kind that it is of, and its metadata. It fails closed: an
// answer that holds anything more did not heed what was asked, and none of it
// is passed on.
func onlyMetadata(raw, typeMeta []byte) ([]byte, error) {
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
		return fmt.Errorf("%w: more than the metadata that was asked for", errMalformed)
	})
	if err != nil {
		return nil, err
	}
	if kind != "PartialObjectMetadata" || metadata.to == 0 {
		return nil, fmt.Errorf("%w: a %.40q where PartialObjectMetadata was asked for", errMalformed, kind)
	}
	return wrapMetadata(raw[s.start:], metadata, typeMeta), nil // extents count from what is kept
}

// wrapMetadata writes head before the metadata and a brace behind it. Head is
// shorter than what stood there, but for kinds of very long names.
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
