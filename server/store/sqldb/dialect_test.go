package sqldb

import "testing"

func TestBindNumbersParameters(t *testing.T) {
	d := postgresDialect()
	if got, want := d.bind("a = ? AND b IN (?,?)"), "a = $1 AND b IN ($2,$3)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
