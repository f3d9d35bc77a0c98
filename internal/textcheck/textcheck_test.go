package textcheck

import "testing"

func TestNamesMustBePrintableUTF8(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"a name", "web-0", ""},
		{"letters of any script", "größe-日本-🚀", ""},
		{"the replacement character itself", "\uFFFD", ""},
		{"Latin-1", "Acc\xe8s", "the byte 0xe8, which is not UTF-8, at byte 3"},
		{"truncated rune at the end", "a\xe6\x97", "the byte 0xe6, which is not UTF-8, at byte 1"},
		{"a surrogate", "\xed\xa0\x80", "the byte 0xed, which is not UTF-8, at byte 0"},
		{"NUL", "a\x00", "the control character U+0000 at byte 1"},
		{"a new line", "a\nb", "the control character U+000A at byte 1"},
		{"delete", "\x7f", "the control character U+007F at byte 0"},
		{"control characters beyond ASCII", "é\u0085", "the control character U+0085 at byte 2"},
	} {
		if got := message(Name(tt.text)); got != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	if err := UTF8([]byte("a\x00\n")); err != nil {
		t.Errorf("UTF8 of control characters: got %v, want nil", err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
