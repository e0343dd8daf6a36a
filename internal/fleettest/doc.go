// Package fleettest proves the fleet on real processes: does a fleet keep what
// one process promises, whatever is killed, frozen or restarted under it?
//
// Every test builds the tiptoe command as users build it and runs tiptoe serve
// and tiptoe worker as processes of their own, on a real Redis and a real
// PostgreSQL, against a simulated web (webfarm) that keeps its own books. What
// is demanded is compared from both sides: the farm's list of pages with the
// ledger's rows, the farm's clock with the gaps that the ledger says were owed.
//
// What is exact and what has a tolerance:
//
//   - Pages lost: none. The farm's list and the ledger's rows are equal sets.
//   - Pages fetched twice: at most what the dead workers had in hand, counted
//     at each kill from both sides (blows).
//   - Hosts of a lost worker are asked again within a lease and a heartbeat; a
//     turn, the host's pace and what this machine was late come on top.
//   - Gaps in the ledger: exact, request start to request start by the
//     workers' own clocks, which here are one machine's. A request that was in
//     flight when its worker was killed has no row, so its successor's gap is
//     also taken from the farm.
//   - Gaps at the farm: request heads arrive as the machine's scheduler lets
//     them, so a busy machine shortens and lengthens them; what is allowed for
//     that is said at each test.
//
// The tests run apart from the others and without the race detector, as they
// watch other processes. Short forms by default; TIPTOE_FLEET=full (make
// fleet-long) runs them with the figures of the promises, for many minutes.
package fleettest
