//go:build race

package frontiertest

const raceDetector = true
