package hostile

import (
	"net/http"
	"time"
)

// retryAfter are 429s with a Retry-After that needs care.
var (
	retryAfterGarbage  = retryAfter("retry-after-garbage", "429 with a Retry-After that is neither seconds nor a date", fixed("soon; maybe -1e99"))
	retryAfterNegative = retryAfter("retry-after-negative", "429 with a Retry-After of minus an hour", fixed("-3600"))
	retryAfterHuge     = retryAfter("retry-after-huge", "429 with a Retry-After of three million years", fixed("99999999999999"))
	retryAfterDate     = retryAfter("retry-after-date", "429 with a Retry-After as a date two minutes ahead", func() string {
		return time.Now().Add(2 * time.Minute).UTC().Format(http.TimeFormat)
	})
	retryAfterPast = retryAfter("retry-after-past", "429 with a Retry-After as a date long gone", fixed("Sun, 06 Nov 1994 08:49:37 GMT"))
)

func fixed(value string) func() string { return func() string { return value } }

func retryAfter(name, what string, value func() string) Case {
	return Case{
		Name: name, What: what,
		serve: func(s *Server) {
			s.web(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", value())
				http.Error(w, "slow down", http.StatusTooManyRequests)
			})
		},
	}
}
