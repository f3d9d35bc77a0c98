package sqldb

import (
	"slices"
	"testing"
)

func TestMigrationsAreSplitAtLineEnds(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // nil if the file is rejected
	}{
		{"comments between statements", "-- +goose Up\n-- why\nA;\n\n-- because\nB\n\t-- kept\n\t(c);\n", []string{"A;", "B\n\t-- kept\n\t(c);"}},
		{"a semicolon within a line", "-- +goose Up\nINSERT ';' INTO a;\nB;\n", []string{"INSERT ';' INTO a;", "B;"}},
		{"windows line ends within", "-- +goose Up\nA;\r\nB;\r\n", []string{"A;", "B;"}},
		{"no annotation", "A;\n", nil},
		{"another annotation", "-- +goose Up\nA;\n-- +goose Down\nB;\n", nil},
		{"an unfinished statement", "-- +goose Up\nA;\nB\n", nil},
	} {
		got, err := splitMigration(tt.text)
		if (err != nil) != (tt.want == nil) || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestMigrationsSayWhichServersCanUseThem(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       int64 // 0 if the file is rejected
	}{
		{"an additive one", "-- +goose Up\n-- Compatible from: 15\nA;\n", 15},
		{"one that only its own servers can use", "-- +goose Up\n-- Compatible from: 17\nA;\n", 17},
		{"none is named", "-- +goose Up\nA;\n", 0},
		{"not on the second line", "-- +goose Up\n-- why\n-- Compatible from: 15\nA;\n", 0},
		{"a version that cannot tell", "-- +goose Up\n-- Compatible from: 14\nA;\n", 0},
		{"a later version", "-- +goose Up\n-- Compatible from: 18\nA;\n", 0},
		{"a number without end", "-- +goose Up\n-- Compatible from: 99999999999999999999\nA;\n", 0},
	} {
		got, err := parseCompatibleFrom(17, tt.text)
		if got != tt.want || (err != nil) != (tt.want == 0) {
			t.Errorf("%s: got %d, %v, want %d", tt.name, got, err, tt.want)
		}
	}
}
