package mask

import "testing"

func TestURLPasswords(t *testing.T) {
	for text, want := range map[string]string{
		"http://me:hunter2@host/path":           "http://me:********@host/path",
		`got "https://:hun:ter2@host" and more`: `got "https://:********@host" and more`,
		"http://me@host:80/a:b@c":               "http://me@host:80/a:b@c",
		"postgres://a:b@c, mysql://d:e@f":       "postgres://a:********@c, mysql://d:********@f",
		"http://[::1]:80/x@y":                   "http://[::1]:80/x@y",
		"a:b@c":                                 "a:b@c",
	} {
		if got := URLPasswords(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
