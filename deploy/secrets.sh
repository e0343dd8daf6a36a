#!/bin/sh
# Writes the secrets that compose.yaml reads, once: random passwords, in files that only you may read.
set -eu
cd "$(dirname "$0")"
umask 077

for file in postgres.env redis.env tiptoe.env; do
  if [ -e "$file" ]; then
    echo "$file exists already; remove it only if the data it protects may go, too" >&2
    exit 1
  fi
done

random() { od -An -tx1 -N24 /dev/urandom | tr -d ' \n'; }
postgres=$(random)
redis=$(random)

cat >postgres.env <<END
POSTGRES_USER=tiptoe
POSTGRES_DB=tiptoe
POSTGRES_PASSWORD=$postgres
END
echo "REDIS_PASSWORD=$redis" >redis.env
cat >tiptoe.env <<END
TIPTOE_DATABASE_URL=postgres://tiptoe:$postgres@postgres:5432/tiptoe?sslmode=disable
TIPTOE_REDIS_URL=redis://:$redis@redis:6379/0
END
echo "postgres.env, redis.env and tiptoe.env are written"
