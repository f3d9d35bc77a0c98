package output

import "fmt"

// Count returns a number of things: "1 cluster", "2 clusters". The noun is singular, and its
// plural must end in s.
func Count[N ~int | ~int64](n N, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
