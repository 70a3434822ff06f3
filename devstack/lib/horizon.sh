#!/usr/bin/env bash
# Tests ebbtide-dashboard with the Horizon of Debian and with the newest of PyPI.
#
#   bash devstack/lib/horizon.sh --unit      its unit tests, with both
#   bash devstack/lib/horizon.sh --live      both as web servers of a cloud that
#                                            ./devstack/openstack up has started (source its
#                                            openrc), in Chromium
#   bash devstack/lib/horizon.sh --serve debian|newest [WEBROOT]
#                                            one of them, until Control-C; says its address
#
# The newest Horizon's packages are pinned in horizon.txt and installed below target; once they are
# there, no network is needed. Nothing under /etc or /usr is changed: a Horizon's own files are
# links, and beside them is what ./packaging/python packs.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."
. devstack/lib/packages.sh
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 2; }
out=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")/horizon
export PYTHONDONTWRITEBYTECODE=1

install_newest() {
    local pins=devstack/lib/horizon.txt
    ! cmp -s "$pins" "$out/newest/made-of" || return 0
    printf '==> The newest Horizon, from PyPI\n'
    rm -rf -- "$out/newest"
    mkdir -p "$out"
    /usr/bin/python3 -m venv "$out/newest"
    "$out/newest/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$pins"
    cp "$pins" "$out/newest/made-of"
}

# Python of a Horizon: debian or newest.
python_of() { if [ "$1" = debian ]; then echo /usr/bin/python3; else echo "$out/newest/bin/python"; fi; }

version_of() {
    "$(python_of "$1")" -c 'import django; from importlib.metadata import version as v
print("Horizon", v("horizon"), "Django", django.__version__)'
}

unit() {
    local which
    for which in debian newest; do
        printf '==> ebbtide-dashboard, unit tests: %s\n' "$(version_of "$which")"
        (cd ebbtide-dashboard && PYTHONPATH=$PWD:$PWD/../python-ebbtideclient "$(python_of "$which")" \
            -W ignore -m django test --settings ebbtide_dashboard.tests.settings ebbtide_dashboard.tests)
    done
}

free_port() {
    /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# prepare WHICH WEBROOT: a Horizon with what our packages install, and its static files. Sets $home,
# $url, and what the server's environment needs.
prepare() {
    local python from manage package
    python=$(python_of "$1")
    home=$out/live-$1
    port=$(free_port)
    url=http://127.0.0.1:$port$2
    rm -rf -- "$home"
    mkdir -p "$home/site"
    head -c 32 /dev/urandom | base64 | tr -d '\n' >"$home/secret"
    from=$("$python" -c 'import importlib.util as u; print(u.find_spec("openstack_dashboard").submodule_search_locations[0])')
    cp -rs -- "$from" "$home/site/openstack_dashboard"
    rm -rf -- "$home/site/openstack_dashboard/local"
    ./packaging/python --to "$home" >/dev/null
    for package in "$home"/*.deb; do dpkg-deb --extract "$package" "$home/packages"; done
    cp -r "$home"/packages/usr/lib/python3/dist-packages/. "$home/site/"
    touch "$home/site/openstack_dashboard/local"/{,enabled/}__init__.py
    cp devstack/lib/horizon_settings.py "$home/site/openstack_dashboard/local/local_settings.py"
    printf 'from django.core.wsgi import get_wsgi_application\n\napplication = get_wsgi_application()\n' >"$home/wsgi.py"
    export EBBTIDE_HORIZON_HOME=$home EBBTIDE_HORIZON_WEBROOT=$2 PYTHONPATH=$home/site
    export DJANGO_SETTINGS_MODULE=openstack_dashboard.settings
    manage="$python -W ignore -m django"
    $manage collectstatic --noinput --verbosity 0 >"$home/static.log" 2>&1 &&
        $manage compress --force >>"$home/static.log" 2>&1 || { tail -n 20 "$home/static.log" >&2; return 1; }
}

# serve WHICH WEBROOT: as a web server does with mod_wsgi, in the foreground.
serve() {
    local more=(--wsgi-file "$home/wsgi.py")
    # What is mounted is looked up without the folder.
    [ "$2" = / ] || more=(--manage-script-name --mount "${2%/}=$home/wsgi.py" \
        --static-map "/static=$home/static")
    [ "$1" = debian ] || more+=(--virtualenv "$out/newest")
    exec uwsgi --plugin python3 "${more[@]}" --pythonpath "$home/site" --http-socket "127.0.0.1:$port" \
        --master --processes 1 --threads 6 --enable-threads --die-on-term --buffer-size 65535 --need-app \
        --static-map "$2static=$home/static"
}

# live WHICH WEBROOT
live() {
    local status=0 tries=0
    prepare "$1" "$2"
    (serve "$1" "$2") >"$home/server.log" 2>&1 &
    server=$!
    # Ends with this shell, also after Control-C.
    trap 'kill "$server" 2>/dev/null || true' EXIT
    until curl --silent --fail --output /dev/null "${url}auth/login/"; do
        kill -0 "$server" 2>/dev/null && [ $((tries += 1)) -lt 120 ] || { tail -n 20 "$home/server.log" >&2; return 1; }
        sleep 0.5
    done
    printf '==> ebbtide-dashboard in Chromium: %s, %s\n' "$(version_of "$1")" "$url"
    EBBTIDE_HORIZON_URL=$url ./console/test horizon || status=$?
    kill "$server" 2>/dev/null || true
    wait "$server" || true
    [ "$status" = 0 ] || tail -n 30 "$home/server.log" >&2
    return "$status"
}

command=${1:-}
case $command in --unit|--live) [ $# -eq 1 ] || usage ;; --serve) [ $# -ge 2 ] && [ $# -le 3 ] || usage ;; *) usage ;; esac
ensure_packages horizon openstack-client plugins-python
install_newest
case $command in
    --unit) unit ;;
    --live)
        : "${OS_AUTH_URL:?source the openrc of the cloud first}"
        ensure_packages node chromium curl
        [ -d console/node_modules ] || ./console/build
        # One below the root of its server, the other in a folder.
        (live debian /)
        (live newest /dashboard/) ;;
    --serve)
        : "${OS_AUTH_URL:?source the openrc of the cloud first}"
        case $2 in debian|newest) ;; *) usage ;; esac
        prepare "$2" "${3:-/}"
        echo "Horizon: $url"
        serve "$2" "${3:-/}" ;;
esac
