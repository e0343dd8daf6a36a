// Package limits answers: has this crawl or job had enough, and why?
//
// It is pure. Whoever runs a crawl tells it what happened and acts on the
// answer; nothing here stops, logs or counts time by itself.
//
//	Budget    how much of a page or time limit is used: the sentence for when
//	          it is spent [BUD-1..3] and the warnings on the way [NXT-4]
//	Failures  failed tasks in a row after which a job is given up [JOB-1]
//	Throttles 429s in a row at the slowest pace after which a job is
//	          cancelled [RET-3]; off unless asked for
//	Counters  what metrics read [OBS-2]
//	Limit     what an order gets of what it asks for: safety, then plan, then
//	          usage, then its own wish, each with its reason [SAF-1, SAF-8]
//
// How many slots a learned delay takes from a host [CON-1] is politeness's to
// say (State.Withheld); a change of it is counted here.
//
// Budget, Failures and Throttles belong to one crawl and one goroutine;
// Counters may be used from many. A crash loses the streaks: a job that is
// resumed begins to count anew, which gives it more tries and never fewer.
package limits
