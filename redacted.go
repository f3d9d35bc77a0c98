package vedette

// The texts that agents send in place of values that redaction removes.
const (
	Redacted = "[redacted]"
	// RedactedBinary is Redacted in base64, for the binaryData of a ConfigMap, because readers decode all values there.
	RedactedBinary = "W3JlZGFjdGVkXQ=="
)
