package redisstore

import (
	"testing"
	"time"

	"tiptoe/internal/frontier/frontiertest"
	"tiptoe/internal/testenv"
)

const testPatience = 200 * time.Millisecond

func runLeases(t *testing.T, opts Options) {
	opts.Patience = testPatience
	frontiertest.RunLeases(t, testPatience, func(t testing.TB) func() frontiertest.Member {
		opts := opts
		opts.Prefix = newPrefix()
		return func() frontiertest.Member { return mustOpen(t, opts) }
	})
}

func Test_the_store_keeps_the_contract_of_frontier_Leases(t *testing.T) {
	r := testenv.StartRedis(t)
	t.Run("eight shards", func(t *testing.T) { runLeases(t, Options{URL: r.URL()}) })
	t.Run("one shard", func(t *testing.T) { runLeases(t, Options{URL: r.URL(), Shards: 1}) })
}

func Test_the_contract_of_leases_holds_on_a_cluster(t *testing.T) {
	r := testenv.StartRedisCluster(t)
	runLeases(t, Options{URL: r.URL()})
}
