package configfile

import "strings"

// Keys have the notations that Spring binds, because files of Clouddriver and of its plugins use them:
// case, dashes and underscores do not matter. operationWaitMs, operation-wait-ms and operation_wait_ms are
// one key. Placeholders are looked up without this: in "zoneId: ${ZONE_ID}", the name is a variable's.

// relaxed returns a path in the notation in which all notations of it are equal.
func relaxed(path string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(path))
}

// cutRelaxed removes a leading key and the dot after it from a path, whatever the notation of both. It
// reports false if the path does not start with the key.
func cutRelaxed(path, key string) (rest string, ok bool) {
	at := 0
	for i := range len(key) {
		if isSeparator(key[i]) {
			continue
		}
		at = skipSeparators(path, at)
		if at == len(path) || lower(path[at]) != lower(key[i]) {
			return "", false
		}
		at++
	}
	at = skipSeparators(path, at)
	switch {
	case at == len(path):
		return "", true
	case path[at] == '.' && key != "":
		return path[at+1:], true
	}
	return "", false
}

func skipSeparators(path string, at int) int {
	for at < len(path) && isSeparator(path[at]) {
		at++
	}
	return at
}

func isSeparator(c byte) bool { return c == '-' || c == '_' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c - 'A' + 'a'
	}
	return c
}

// SameKey reports whether two names of a key are notations of one.
func SameKey(a, b string) bool { return relaxed(a) == relaxed(b) }
