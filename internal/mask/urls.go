package mask

import "regexp"

// urlPassword matches the user and the password in a URL.
var urlPassword = regexp.MustCompile(`(://[^/\s:@"']*):[^/\s@"']+@`)

// URLPasswords replaces the passwords in the URLs of a text.
func URLPasswords(text string) string { return urlPassword.ReplaceAllString(text, "$1:********@") }
