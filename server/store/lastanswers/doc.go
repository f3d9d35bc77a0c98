// Package lastanswers stores the last complete answers of a Clouddriver behind the server.
package lastanswers
