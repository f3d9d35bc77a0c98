package mask

import "testing"

func TestCredentialsInURLsAreMasked(t *testing.T) {
	for text, want := range map[string]string{
		"http://me:hunter2@host/path":                           "http://me:********@host/path",
		`got "https://:hun:ter2@host" and more`:                 `got "https://:********@host" and more`,
		"http://host:80/a:b@c":                                  "http://host:80/a:b@c",
		"https://ghp_hunter2@host/a@b":                          "https://********@host/a@b",
		"ssh://git@host/repo":                                   "ssh://git@host/repo",
		"postgres://a:b@c, mysql://d:e@f":                       "postgres://a:********@c, mysql://d:********@f",
		"http://[::1]:80/x@y":                                   "http://[::1]:80/x@y",
		"a:b@c":                                                 "a:b@c",
		"https://h/charts?sig=hunter2":                          "https://h/charts?sig=********",
		"https://h/charts?sig=hunter2&se=2&sslmode=require":     "https://h/charts?sig=********&se=********&sslmode=require",
		"jdbc:mysql://h/d?useSSL=true&sslMode=VERIFY_CA&x=1":    "jdbc:mysql://h/d?useSSL=true&sslMode=VERIFY_CA&x=********",
		"postgres://h/d?sslmode=hunter2":                        "postgres://h/d?sslmode=********",
		"https://h?hunter2":                                     "https://h?********",
		"https://h/?a=hun=ter2;b=hunter2#c":                     "https://h/?a=********&b=********#c",
		"https://h/#access_token=hunter2":                       "https://h/#access_token=********",
		"https://a:hunter2@h?x=hunter2":                         "https://a:********@h?x=********",
		"read https://h/x?sig=hunter2: refused (see http://h).": "read https://h/x?sig=********: refused (see http://h).",
		"postgres://u:********@h/d?sslmode=disable&********":    "postgres://u:********@h/d?sslmode=disable&********",
		"https://h/a?":                                          "https://h/a?",
	} {
		got := URLs(text)
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if again := URLs(got); again != got {
			t.Errorf("masked twice: got %q, want %q", again, got)
		}
	}
}
