package configfile

import "strings"

// nearest returns the known word that looks most like a misspelt one, or ""
// where none comes close: one change for each three letters is close.
func nearest(word string, known []string) string {
	best, least := "", len(word)/3+1
	for _, candidate := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d <= least && (best == "" || d < least) {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace to get from a to b
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
