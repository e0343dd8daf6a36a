// Package acceptance answers: does the program that users run keep its
// promises, on real servers, measured from their side?
//
// It has no code of its own. Its tests build the tiptoe command once and run
// it as a process, against nginx with real documentation trees, the simulated
// web (package webfarm) and the misbehaving servers (package hostile), and
// then compare what the servers counted with what the ledger says:
//
//	docs_test.go      a real tree is fetched whole, and no page twice
//	kill_test.go      kill -9 and resume: nothing lost, little repeated
//	clocks_test.go    kill -9 and resume: no host is asked too early
//	memory_test.go    many queued URLs on many hosts in bounded memory
//	idle_test.go      many waiting URLs cost no processor time
//	defence_test.go   every misbehaviour ends as it should, alone
//	guard_test.go     no way from the public web into private addresses
//	wire_test.go      requests the server saw = rows in the ledger
//
// and tiptoe serve, over its API:
//
//	service_caps_test.go     caps, timeout and queue, counted on the wire
//	service_quota_test.go    a crowd at the last pages of a month's quota
//	service_kill_test.go     kill -9 and SIGTERM during jobs, and on again
//	service_tenants_test.go  every route with another tenant's ids
//	service_share_test.go    two tenants on one host, and on few workers
//	service_config_test.go   each setting, reload, malformed settings
//	service_hooks_test.go    webhooks, warm jobs, a newcomer with curl
//
// Two tests have a long form, chosen by the environment, whose figures are
// those of the project's promises; without it they run a smaller one:
//
//	TIPTOE_KILLS=20       kill -9 at 20 instants of a 10,000-page crawl
//	TIPTOE_MEMORY=full    1,000,000 URLs on 10,000 hosts
//
// Everything stays on loopback. A test whose program or document tree is not
// installed says so and is skipped, or fails when CI=true (package testenv):
// nginx-light, python3-doc and rust-doc are the Debian packages.
package acceptance
