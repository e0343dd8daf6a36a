//go:build unix

package testenv

import (
	"os"
	"testing"
	"time"
)

func Test_a_redis_ends_with_whoever_started_it(t *testing.T) {
	r := StartRedis(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leash.Close() // what the system does for a process that is gone
	ended := make(chan error, 1)
	go func() { ended <- r.parent.Wait() }()
	select {
	case <-ended:
	case <-time.After(readyWithin):
		t.Fatal("it goes on")
	}
	r.parent, r.leash = nil, nil
	if _, err := r.Do("PING"); err == nil {
		t.Error("it answers")
	}
	if _, err := os.Stat(r.dir); err == nil {
		t.Error("its directory is still there")
	}
}

func Test_a_redis_that_is_killed_comes_back_with_what_it_had_acknowledged(t *testing.T) {
	r := StartRedis(t)
	if _, err := r.Do("SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	r.Kill(t)
	if _, err := r.Do("PING"); err == nil {
		t.Fatal("it answers after its end")
	}
	r.Start(t)
	if v, err := r.Do("GET", "k"); err != nil || v != "v" {
		t.Fatalf("read %q, %v", v, err)
	}
	r.Restart(t)
	if v, err := r.Do("GET", "k"); err != nil || v != "v" {
		t.Fatalf("read %q, %v after a restart", v, err)
	}
}

func Test_a_redis_cluster_of_one_refuses_keys_of_two_slots_together(t *testing.T) {
	r := StartRedisCluster(t)
	if _, err := r.Do("MSET", "{a}1", "v", "{a}2", "v"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Do("MSET", "{a}1", "v", "{b}2", "v"); err == nil {
		t.Fatal("it took keys of two slots")
	}
}
