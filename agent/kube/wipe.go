package kube

import (
	"bytes"
	"crypto/tls"
	"errors"
	"reflect"
	"unsafe"
)

// ErrCannotWipe says that crypto/tls is not built as wipeTLS knows it.
var ErrCannotWipe = errors.New("this build can't wipe what TLS leaves in memory, so Secrets are not watched: build with Go 1.26, or leave Secrets out of the kinds")

// tlsFieldOffsets is where crypto/tls and bytes keep what must be wiped: offsets of
// tls.Conn.rawInput, tls.Conn.input, bytes.Buffer.buf and bytes.Buffer.off.
type tlsFieldOffsets struct{ rawInput, input, buf, off uintptr }

// findTLSFields looks the fields up by name and type. There is no other way to get
// at the buffer, and a Go version that names them otherwise must be noticed.
func findTLSFields() (tlsFieldOffsets, bool) {
	conn, buffer := reflect.TypeFor[tls.Conn](), reflect.TypeFor[bytes.Buffer]()
	rawInput, a := conn.FieldByName("rawInput")
	input, b := conn.FieldByName("input")
	buf, c := buffer.FieldByName("buf")
	off, d := buffer.FieldByName("off")
	ok := a && b && c && d && rawInput.Type == buffer && input.Type == reflect.TypeFor[bytes.Reader]() &&
		buf.Type == reflect.TypeFor[[]byte]() && off.Type == reflect.TypeFor[int]()
	return tlsFieldOffsets{rawInput.Offset, input.Offset, buf.Offset, off.Offset}, ok
}

// checkWipeable fails where wipeTLS would.
func checkWipeable() error {
	if _, ok := findTLSFields(); !ok {
		return ErrCannotWipe
	}
	return nil
}

// wipeTLS zeroes what a connection has decrypted and handed out. Records are
// decrypted in place in rawInput, and input reads them from there: once that is
// drained, all of rawInput but its unread part, which is still encrypted, is
// done with. Before that, the next read will take the rest, and wipe then. It
// must not be called during a Read.
func wipeTLS(c *tls.Conn) error {
	offsets, ok := findTLSFields()
	if !ok {
		return ErrCannotWipe
	}
	input := (*bytes.Reader)(unsafe.Add(unsafe.Pointer(c), offsets.input))
	if input.Len() == 0 {
		offsets.wipe(c)
	}
	return nil
}

// wipeClosed zeroes all that a connection has decrypted. It must not be read
// from again.
func wipeClosed(c *tls.Conn) error {
	offsets, ok := findTLSFields()
	if !ok {
		return ErrCannotWipe
	}
	offsets.wipe(c)
	return nil
}

func (o tlsFieldOffsets) wipe(c *tls.Conn) {
	raw := unsafe.Add(unsafe.Pointer(c), o.rawInput)
	buf := *(*[]byte)(unsafe.Add(raw, o.buf))
	off := *(*int)(unsafe.Add(raw, o.off))
	clear(buf[:off])
	clear(buf[len(buf):cap(buf)])
}
