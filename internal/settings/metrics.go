package settings

// MaxAccounts is the largest value of prometheus.maxAccounts. Each account has about eight series.
const MaxAccounts = 20_000

// CheckMaxAccounts checks how many accounts have metrics of their own.
func CheckMaxAccounts(n int, report func(path, format string, args ...any)) {
	const path = "prometheus.maxAccounts"
	if n < 0 || n > MaxAccounts {
		report(path, "%q must be from 0 to %d, got %d", path, MaxAccounts, n)
	}
}
