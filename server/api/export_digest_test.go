package api

import "github.com/vedette-io/vedette"

// DigestOf returns what the history keeps of an operation with an id from its caller.
func DigestOf(op vedette.Operation, key string) string {
	return newOperationDigester([]byte(key)).of(op)
}
