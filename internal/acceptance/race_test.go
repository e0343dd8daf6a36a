//go:build race

package acceptance

func init() { raceDetector = true }
