#!/usr/bin/env bash
# devstack/openstack tempest: Tempest's compute tests on an empty cloud and on a full one.

_stack_tempest_pins=$PWD/devstack/lib/openstack/tempest.txt
_stack_tempest_skips=$PWD/devstack/lib/openstack/tempest-skip.txt
_stack_tempest_short=$PWD/devstack/lib/openstack/tempest-short.txt

_stack_tempest_usage() { cat <<X
./devstack/openstack tempest [--full] [--only REGEX] [--concurrency N] [empty|full]

Runs the public Tempest suite (tempest.api.compute) with normal flavors twice, each time on a new
cloud with Debian's Neutron and Cinder:
  empty   with nova-scheduler and no other servers
  full    with ebbtide-scheduler and its agent, every host filled with preemptible servers, which a
          tenant asks for again as soon as there is room
The same tests must pass on both. --full: all tests of tempest.api.compute; else those that
devstack/lib/openstack/tempest-short.txt names. --only: those that match. empty, full: only this
cloud; the table needs the results of both. --concurrency: tests at the same time (default 2).
tempest-skip.txt names the tests that are left out, each with a reason.

The table is $stack_home-tempest/table.md; empty.json and full.json have the result of each test.
X
}

stack_command_tempest() {
    local which=() cloud status=0
    tempest_all='' tempest_only='' tempest_concurrency=2
    tempest_folder=$stack_home-tempest
    while [ $# -gt 0 ]; do
        case $1 in
            -h|--help) _stack_tempest_usage; return 0 ;;
            --full) tempest_all=1 ;;
            --only|--concurrency)
                [ $# -ge 2 ] ||
                    { echo "devstack/openstack tempest: $1 needs a value" >&2; return 2; }
                printf -v "tempest_${1#--}" '%s' "$2"
                shift ;;
            empty|full) which+=("$1") ;;
            *)
                echo "devstack/openstack tempest: unknown option $1 (see --help)" >&2
                return 2 ;;
        esac
        shift
    done
    [ ${#which[@]} -gt 0 ] || which=(empty full)
    mkdir -p "$tempest_folder"
    _stack_tempest_install
    _stack_tempest_list
    stack_build_ebbtide
    stack_test_failed=()
    stack_test_times=()
    for cloud in "${which[@]}"; do
        _stack_timed "Tempest on the $cloud cloud" "_stack_tempest_$cloud"
        _stack_tempest_on down
    done
    echo
    printf '%s\n' "${stack_test_times[@]}"
    if [ -s "$tempest_folder/empty.json" ] && [ -s "$tempest_folder/full.json" ]; then
        echo
        /usr/bin/python3 "$stack_tools/tempest_table.py" "$tempest_folder"/{empty,full}.json \
            > "$tempest_folder/table.md" || status=$?
        cat -- "$tempest_folder/table.md"
        [ "$status" -eq 0 ] || stack_test_failed+=('the same tests pass')
    fi
    if [ ${#stack_test_failed[@]} -gt 0 ]; then
        printf 'FAILED: %s\n' "${stack_test_failed[@]}" >&2
        return 1
    fi
}

# Tempest in a virtual environment, once; no network is needed then.
_stack_tempest_install() {
    tempest_venv=$stack_cache/tempest
    stack_pip_environment "$tempest_venv" "$_stack_tempest_pins" Tempest
}

# The lines of a list of regular expressions, without comments and reasons.
_stack_tempest_regexes() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1"; }

# The tests that run: $tempest_folder/tests.
_stack_tempest_list() {
    local tempest
    tempest=$(cd "$tempest_venv"/lib/python3*/site-packages && pwd)
    cat > "$tempest_folder/.stestr.conf" <<X
[DEFAULT]
test_path=$tempest/tempest/test_discover
top_dir=$tempest
group_regex=([^\.]*\.)*
X
    rm -rf -- "$tempest_folder/.stestr"
    _stack_tempest_stestr init
    _stack_tempest_regexes "$_stack_tempest_skips" > "$tempest_folder/left-out"
    _stack_tempest_stestr list 'tempest\.api\.compute' |
        grep '^tempest\.api\.compute' > "$tempest_folder/all"
    grep -vEf "$tempest_folder/left-out" "$tempest_folder/all" > "$tempest_folder/allowed"
    if [ -n "$tempest_only" ]; then
        grep -E "$tempest_only" "$tempest_folder/allowed" > "$tempest_folder/tests"
    elif [ -z "$tempest_all" ]; then
        _stack_tempest_regexes "$_stack_tempest_short" > "$tempest_folder/short"
        grep -Ef "$tempest_folder/short" "$tempest_folder/allowed" > "$tempest_folder/tests"
    else
        cp -- "$tempest_folder/allowed" "$tempest_folder/tests"
    fi
    stack_say "$(wc -l < "$tempest_folder/tests") of $(wc -l < "$tempest_folder/all") tests run;" \
        "$(grep -vxFcf "$tempest_folder/allowed" "$tempest_folder/all") are left out by the list"
}

_stack_tempest_stestr() {
    (cd "$tempest_folder" && env TEMPEST_CONFIG_DIR="$tempest_folder" PYTHONDONTWRITEBYTECODE=1 \
        "$tempest_venv/bin/stestr" "$@")
}

# _stack_tempest_on COMMAND…: ./devstack/openstack, for the cloud of these tests.
_stack_tempest_on() {
    EBBTIDE_OPENSTACK_HOME=$tempest_folder/cloud EBBTIDE_BIN_DIR=$(stack_ebbtide_bin) \
        ./devstack/openstack "$@"
}

_stack_tempest_tool() {
    local tool=$stack_tools/$1
    shift
    _stack_tempest_on run /usr/bin/python3 "$tool" "$@"
}

_stack_tempest_up() {
    _stack_tempest_on up --fresh --neutron debian --cinder --grace 1 \
        --filter SameHostFilter --filter DifferentHostFilter "$@"
    _stack_tempest_tool tempest_cloud.py "$tempest_folder"
}

# _stack_tempest_run CLOUD: the tests, and their results in CLOUD.json. Tests that fail are no
# failure of this step: the table judges them.
_stack_tempest_run() {
    local said=$tempest_folder/$1
    rm -f -- "$said.json"
    _stack_tempest_stestr run --concurrency "$tempest_concurrency" \
        --load-list "$tempest_folder/tests" > "$said.out" 2>&1 || true
    sed -n '/^Totals/,/^Sum/p' "$said.out"
    _stack_tempest_stestr last --subunit > "$said.subunit" || true
    "$tempest_venv/bin/python" "$stack_tools/tempest_results.py" "$tempest_folder/tests" \
        < "$said.subunit" > "$said.json"
}

_stack_tempest_empty() {
    _stack_tempest_up --with nova-scheduler
    _stack_tempest_run empty
}

_stack_tempest_full() {
    local filler said=$tempest_folder/filler.out
    _stack_tempest_up --with ebbtide
    rm -f -- "$tempest_folder/filler.json"
    # No function: the signal must reach the program.
    EBBTIDE_OPENSTACK_HOME=$tempest_folder/cloud ./devstack/openstack run \
        /usr/bin/python3 "$stack_tools/filler.py" "$tempest_folder/filler.json" > "$said" 2>&1 &
    filler=$!
    # shellcheck disable=SC2064 # this filler
    trap "kill -TERM $filler 2>/dev/null || true" EXIT
    stack_wait_for 180 'the cloud to be full' '' grep -qx full "$said"
    _stack_tempest_run full
    kill -TERM "$filler"
    wait "$filler" || { tail -n 20 -- "$said" >&2; return 1; }
    trap - EXIT
    _stack_tempest_tool tempest_after.py "$tempest_folder/filler.json"
}
