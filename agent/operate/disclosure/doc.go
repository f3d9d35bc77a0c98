// Package disclosure rejects patches and manifests that would make a value readable that redaction removes: the data of
// Secrets, and of Secrets that other objects embed, and what rules redact.
//
// What a patch reveals depends on the object that it is applied to. A check reads that object, and its result applies to the version
// that was read only.
package disclosure
