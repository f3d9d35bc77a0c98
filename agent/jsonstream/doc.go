// Package jsonstream splits the JSON that API servers send while it arrives.
//
// A [Splitter] finds where the objects of a list or the messages of a watch begin
// and end, in one read buffer that grows up to a bound. It decodes nothing and
// keeps nothing: the caller handles each object in the buffer, and the next object
// overwrites it. Memory therefore does not depend on the length of the stream.
//
// The package knows how Kubernetes writes lists, watch events and object metadata.
// It knows nothing about feeds, connections or API servers. docs/decisions/0064 compares it with encoding/json.
package jsonstream
