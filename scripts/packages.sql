# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# packages.sql: added to the tree by scripts/env --with sql, for host/fleet: what installs DuckDB and Spark, and the Java
# that Spark needs.

default-jre-headless
python3-pip
