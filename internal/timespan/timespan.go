// Package timespan reads the times that users write to restrict a list.
package timespan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/vedette-io/vedette"
)

// clockDifference is how far a time may be in the future, because the clocks of two machines differ.
const clockDifference = time.Minute

// ParsePast reads a time: how long ago, as a duration with days and weeks (90s, 2h30m, 7d), or a time in RFC 3339. An
// empty text is the zero time. A time in the future is an error, because nothing has happened since. The name is of the
// parameter.
func ParsePast(name, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if err := CheckForm(name, text); err != nil {
		return time.Time{}, err
	}
	t, _ := parse(text, now) // its form was checked
	if t.After(now.Add(clockDifference)) {
		return time.Time{}, vedette.Errorf(vedette.Invalid, "invalid %s %.100q: it is in the future, and now it is %s", name, text,
			now.UTC().Format(time.RFC3339))
	}
	return t, nil
}

// CheckForm returns the error of ParsePast about a text that is no time at all. It is for clients, whose clock may be wrong.
func CheckForm(name, text string) error {
	if text == "" {
		return nil
	}
	if _, err := parse(text, time.Time{}); err != nil {
		return vedette.Errorf(vedette.Invalid,
			"invalid %s %.100q: must be how long ago, for example 30m, 2h or 7d, or a time, for example 2026-03-01T15:04:05Z", name, text)
	}
	return nil
}

func parse(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	ago, err := parseDuration(text)
	return now.Add(-ago), err
}

// maxDuration is the maximum length of each part of a duration. The sum of three fits into a time.Duration.
const maxDuration = math.MaxInt64 / 3 * time.Nanosecond

// parseDuration is time.ParseDuration with days and weeks, which come first.
func parseDuration(text string) (time.Duration, error) {
	var total time.Duration
	for _, unit := range []struct {
		name   string
		length time.Duration
	}{{"w", 7 * 24 * time.Hour}, {"d", 24 * time.Hour}} {
		number, rest, found := strings.Cut(text, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("read the number of %q: %w", unit.name, err)
		}
		if n > uint64(maxDuration/unit.length) {
			return 0, fmt.Errorf("the number of %q is too large", unit.name)
		}
		if total += time.Duration(n) * unit.length; rest == "" {
			return total, nil
		}
		text = rest
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read the duration: %w", err)
	case d > maxDuration:
		return 0, errors.New("the duration is too long")
	}
	return total + d, nil
}
