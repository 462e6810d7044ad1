#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The queries of Documentation/guide/fleet-sql.md, on files of three hosts that `analyze --parquet` and `explain
# --parquet` wrote and that were merged: DuckDB and Spark give the same answers as `--json`. One trace lost events, two
# hosts have two traces, those of one host have the same alerts, and each analysis ran twice.
# timeout: 900
# long: yes
# worth: DuckDB and Spark

. "$(dirname "$0")/../host.sh"
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user" --only latency-tracker
"$LT_TOP/scripts/env" --with sql
# Spark alone is 400 MB, which the cache keeps
"$LT_TOP/scripts/in-tree" --with sql python3 -m pip install --quiet --root-user-action ignore --no-compile \
	--cache-dir "$LT_CACHE/pip" --target "$work/pip" duckdb pyspark pytz
# in a network namespace of its own, where no other test uses Spark's ports
mkdir "$work/run"
"$LT_TOP/scripts/in-tree" --with sql unshare --net sh -c 'ip link set lo up; exec "$@"' sh \
	env PYTHONPATH="$work/pip" SPARK_LOCAL_IP=127.0.0.1 SPARK_LOCAL_HOSTNAME=localhost \
	python3 "$LT_TOP/tests/fleet.py" "$LT_BUILD/test/latency-tracker" "$LT_TOP/Documentation/guide/fleet-sql.md" "$work/run"
