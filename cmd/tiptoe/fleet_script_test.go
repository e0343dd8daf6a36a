package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"tiptoe/internal/testenv"
)

// TestFleetScripts runs the program on a PostgreSQL and a Redis of each
// script's own: $DATABASE_URL and $REDIS_URL are in its environment, where the
// program looks, too.
func TestFleetScripts(t *testing.T) {
	testenv.Need(t, "redis-server")
	testenv.Postgres(t) // or skip here, with a sentence
	runScripts(t, "testdata/fleet", func(env *testscript.Env) {
		r := testenv.StartRedis(t)
		env.Values["redis"] = r
		env.Setenv("REDIS_URL", r.URL())
		env.Setenv("DATABASE_URL", testenv.Postgres(t))
	})
}

func cmdSQL(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) == 1, "sql STATEMENT")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, ts.Getenv("DATABASE_URL"))
	ts.Check(err)
	defer c.Close(ctx)
	rows, err := c.Query(ctx, args[0])
	ts.Check(err)
	var out strings.Builder
	for rows.Next() {
		v, err := rows.Values()
		ts.Check(err)
		fmt.Fprintln(&out, v[0])
	}
	ts.Check(rows.Err())
	fmt.Fprint(ts.Stdout(), out.String())
}

func cmdRedis(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, !neg && len(args) > 0, "redis COMMAND [ARG...]")
	answer, err := ts.Value("redis").(*testenv.Redis).Do(args...)
	ts.Check(err)
	fmt.Fprintln(ts.Stdout(), answer)
}
