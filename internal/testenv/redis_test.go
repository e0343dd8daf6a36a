//go:build unix

package testenv

import "testing"

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
