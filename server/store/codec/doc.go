// Package codec encodes the columns of a stored object: its head, its body, its uid and the hash
// of its labels, and the zstd compression of heads and bodies. It knows no database. What it
// encodes stays readable: a change of a format needs a new version byte, because rows are never
// rewritten.
package codec
