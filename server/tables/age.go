package tables

import (
	"fmt"
	"time"
)

// Age formats a duration as kubectl formats ages: exactly if it is short, then in two units,
// and finally in one.
func Age(d time.Duration) string {
	const day, year = 24, 24 * 365 // in hours
	seconds := int(d / time.Second)
	minutes := int(d / time.Minute)
	hours := int(d / time.Hour)
	switch {
	case seconds < -1:
		return "<invalid>" // further in the future than clocks differ
	case d < 0:
		return "0s"
	case seconds < 120:
		return fmt.Sprintf("%ds", seconds)
	case minutes < 10:
		return formatUnits(minutes, "m", seconds%60, "s")
	case minutes < 180:
		return fmt.Sprintf("%dm", minutes)
	case hours < 8:
		return formatUnits(hours, "h", minutes%60, "m")
	case hours < 2*day:
		return fmt.Sprintf("%dh", hours)
	case hours < 8*day:
		return formatUnits(hours/day, "d", hours%day, "h")
	case hours < 2*year:
		return fmt.Sprintf("%dd", hours/day)
	case hours < 8*year:
		return formatUnits(hours/year, "y", hours/day%365, "d")
	default:
		return fmt.Sprintf("%dy", hours/year)
	}
}

func formatUnits(big int, bigUnit string, small int, smallUnit string) string {
	if small == 0 {
		return fmt.Sprintf("%d%s", big, bigUnit)
	}
	return fmt.Sprintf("%d%s%d%s", big, bigUnit, small, smallUnit)
}

// ageSince returns the age since a Unix time in seconds. 0 means unknown.
func ageSince(created int64, now time.Time) string {
	if created == 0 {
		return "<unknown>"
	}
	return Age(now.Sub(time.Unix(created, 0)))
}

func ageSinceTimestamp(timestamp string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return "<unknown>"
	}
	return Age(now.Sub(t))
}
