// Package pebblestore is the frontier's store on one machine: where do queues
// and seen sets live when nothing else is installed?
//
// It keeps everything in one directory in a Pebble database (a log-structured
// tree with a write-ahead log), and in front of it, for every open crawl, the
// set of URLs it has seen, in memory.
//
// # What Commit promises, and why it holds
//
// One mutex puts all commits in one order. Under it a commit (1) asks memory,
// and above the memory budget the disk, which URLs are new; (2) appends one
// record to the log and applies it; (3) tells memory. Then it releases the
// mutex and waits for the log to be synced; concurrent commits share a sync.
//
//   - At most once. Steps 1 to 3 of two commits never interleave, so of two
//     that offer the same URL the second finds it.
//   - Nobody relies on a mark that is not durable. Memory learns of a mark
//     only after its record is in the log. Whoever found the mark (through
//     Seen or in step 1) appends his own record later, and a sync covers the
//     log up to its end: if the later record is durable, so is the mark. A
//     commit that has nothing to write waits for the sync of the last record
//     before it. So a page is never acknowledged while a link that was
//     dropped in favour of another page's could still be lost.
//   - All or nothing. A batch is one log record. What can fail without harm
//     (bad names, look-ups) comes before step 2. If the log itself fails, the
//     record may or may not survive; the store then refuses every further
//     commit and must be reopened, which reads the truth from disk. There is
//     no state in which memory knows more than the log and the store goes on.
//
// IDs are reserved in blocks; the mark that reserves a block travels in the
// record that first needs it. After a restart the rest of a block is skipped:
// IDs ascend in the order of commits and never repeat.
//
// # Seen
//
// Up to Options.SeenInMemory URLs over all open crawls are in an exact table,
// ten bytes a slot, rebuilt from disk by OpenCrawl. Further URLs are only on
// disk, behind a filter of about two bytes each: Seen then answers false for
// them, Commit looks them up and stays exact.
//
// # Long-drained queues
//
// An acknowledged entry leaves a tombstone until a compaction removes it, and
// reading a queue from its start walks over them. Since IDs only ascend, a
// stretch of one priority in which nothing lives stays dead for ever, so
// Window remembers long ones and jumps them the next time.
//
// # What a crash loses
//
// Nothing that Commit returned for. In-link counts are kept in memory only
// and start again at one. What Window showed may, for the length of one sync,
// not be durable yet; if it is lost then so is the acknowledgement of the page
// that named it, which will be fetched, and name it, again.
package pebblestore
