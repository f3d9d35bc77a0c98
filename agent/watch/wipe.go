package watch

import (
	"bytes"
	"crypto/tls"
	"errors"
	"reflect"
	"unsafe"
)

// errCannotWipe says that crypto/tls is not built as wipeTLS knows it.
var errCannotWipe = errors.New("this build can't wipe what TLS leaves in memory, so Secrets are not watched: build with Go 1.26, or leave Secrets out of the kinds")

// layout is where crypto/tls and bytes keep what must be wiped: offsets of
// tls.Conn.rawInput, tls.Conn.input, bytes.Buffer.buf and bytes.Buffer.off.
type layout struct{ rawInput, input, buf, off uintptr }

// tlsLayout looks the fields up by name and type. There is no other way to get
// at the buffer, and a Go version that names them otherwise must be noticed.
func tlsLayout() (layout, bool) {
	conn, buffer := reflect.TypeFor[tls.Conn](), reflect.TypeFor[bytes.Buffer]()
	rawInput, a := conn.FieldByName("rawInput")
	input, b := conn.FieldByName("input")
	buf, c := buffer.FieldByName("buf")
	off, d := buffer.FieldByName("off")
	ok := a && b && c && d && rawInput.Type == buffer && input.Type == reflect.TypeFor[bytes.Reader]() &&
		buf.Type == reflect.TypeFor[[]byte]() && off.Type == reflect.TypeFor[int]()
	return layout{rawInput.Offset, input.Offset, buf.Offset, off.Offset}, ok
}

// checkWipeable fails where wipeTLS would.
func checkWipeable() error {
	if _, ok := tlsLayout(); !ok {
		return errCannotWipe
	}
	return nil
}

// wipeTLS zeroes what a connection has decrypted and handed out. Records are
// decrypted in place in rawInput, and input reads them from there: once that is
// drained, all of rawInput but its unread part, which is still encrypted, is
// done with. Before that, the next read will take the rest, and wipe then. It
// must not be called during a Read.
func wipeTLS(c *tls.Conn) error {
	at, ok := tlsLayout()
	if !ok {
		return errCannotWipe
	}
	input := (*bytes.Reader)(unsafe.Add(unsafe.Pointer(c), at.input))
	if input.Len() == 0 {
		at.wipe(c)
	}
	return nil
}

// wipeClosed zeroes all that a connection has decrypted. It must not be read
// from again.
func wipeClosed(c *tls.Conn) error {
	at, ok := tlsLayout()
	if !ok {
		return errCannotWipe
	}
	at.wipe(c)
	return nil
}

func (at layout) wipe(c *tls.Conn) {
	raw := unsafe.Add(unsafe.Pointer(c), at.rawInput)
	buf := *(*[]byte)(unsafe.Add(raw, at.buf))
	off := *(*int)(unsafe.Add(raw, at.off))
	clear(buf[:off])
	clear(buf[len(buf):cap(buf)])
}
