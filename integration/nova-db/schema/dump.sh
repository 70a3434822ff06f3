#!/bin/bash
# Makes the schema dumps beside this file: the tables of nova_api and of a cell's database, empty,
# as Nova's own migrations make them.
#
#     ebbtide-harness run --mariadb -- integration/nova-db/schema/dump.sh NAME NOVA_MANAGE
#
# NAME is the release (26, 34), NOVA_MANAGE its program: /usr/bin/nova-manage of Debian 12's
# python3-nova for 26, and VENV/bin/nova-manage of `python3 -m venv VENV && VENV/bin/pip install
# nova==34.0.0 PyMySQL` for 34. The dumps are committed, so that tests need neither.
set -euo pipefail
name=${1:?which release}
nova_manage=${2:?which nova-manage}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# mysql://user:password@host:port/database, as the harness says it.
url=${EBBTIDE_TEST_MYSQL_URL:?run me with: ebbtide-harness run --mariadb -- $0 ...}
rest=${url#*://}
userinfo=${rest%@*}
address=${rest##*@}
hostport=${address%%/*}
client=(--protocol=tcp --host="${hostport%%:*}" --port="${hostport##*:}" --user="${userinfo%%:*}" --password="${userinfo#*:}")

for database in nova_api nova_cell0 nova_cell1; do
    mariadb "${client[@]}" -e "CREATE DATABASE $database CHARACTER SET utf8mb3"
done
cat >"$work/nova.conf" <<CONF
[DEFAULT]
transport_url = rabbit://unused@127.0.0.1/
state_path = $work
log_file = $work/nova.log
[api_database]
connection = mysql+pymysql://$userinfo@$hostport/nova_api?charset=utf8
[database]
connection = mysql+pymysql://$userinfo@$hostport/nova_cell1?charset=utf8
CONF
"$nova_manage" --config-file "$work/nova.conf" api_db sync
"$nova_manage" --config-file "$work/nova.conf" db sync --local_cell

dump() {
    # Without comments, settings and the tables of deleted rows that were archived: only what makes
    # the tables. No shadow tables.
    local ignore=()
    for table in $(mariadb "${client[@]}" -N -e "SHOW TABLES LIKE 'shadow\\_%'" "$1"); do
        ignore+=("--ignore-table=$1.$table")
    done
    mariadb-dump "${client[@]}" --no-data --compact --skip-comments --skip-triggers "${ignore[@]}" "$1" |
        grep -v '^/\*M\?!' | sed 's/ AUTO_INCREMENT=[0-9]*//' | gzip -9n >"$here/$2-$name.sql.gz"
}
dump nova_api api
dump nova_cell1 cell
echo "made $here/{api,cell}-$name.sql.gz"
