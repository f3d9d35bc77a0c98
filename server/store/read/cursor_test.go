package read

import (
	"testing"

	"github.com/vedette-io/vedette"
)

func FuzzCursor(f *testing.F) {
	f.Add(position{account: "a", kind: vedette.Kind{Name: "Pod"}, namespace: "n", name: "x"}.String())
	f.Add("WyJhIl0")
	f.Fuzz(func(t *testing.T, cursor string) {
		pos, err := parseCursor(cursor)
		if err != nil {
			if vedette.KindOf(err) != vedette.Invalid {
				t.Errorf("%q: got %v, want an error of kind %s", cursor, err, vedette.Invalid)
			}
			return
		}
		if got, err := parseCursor(pos.String()); err != nil || got != pos {
			t.Errorf("got %+v, %v, want %+v", got, err, pos)
		}
	})
}
