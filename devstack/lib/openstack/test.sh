#!/usr/bin/env bash
# devstack/openstack test: the same answers, the story, bad days. Each part brings the cloud into a
# state of its own and prints its time.

_stack_test_usage() { cat <<X
./devstack/openstack test [--release debian|newest|27|…|34] [--short] [--one-cloud] [--days busy|waiting|short] [PART…]

  same-answers   the scenarios against nova-scheduler and against ours, on equal databases; every reply, notification and claim
                 and the databases at the end are compared field by field; a shadow beside nova-scheduler decides the same
  story          ours starts before all of Nova; three full hosts, six preemptible servers, normal requests that need their room
  bad-days       brokers, databases, APIs and schedulers die in the middle of it
  cells          not part of the default: a second cell, learnt of by SIGHUP; boots and preemptions in both, while one is disabled,
                 while its database is away; a server that moves to the other cell, where a victim leaves for it
  rotation       not part of the default: the passwords of ours at RabbitMQ, MariaDB and Keystone change under load; SIGHUP to
                 scheduler, shadow and agent, no request lost, wrong passwords refused; then the certificate of the API
  batch          not part of the default: jobs, bags and workflows on servers of a tenant, by ebbtide-batch; then the same without
                 Nova's API for two minutes
  slurm          not part of the default: nodes of a Slurm cluster are servers of a tenant, made and given back by ebbtide-batch;
                 normal servers take two
  console        not part of the default: the console in Chromium and in Firefox, with Keystone's tokens: every view, a preemption
                 while it is watched, the scheduler killed and started again, what a tenant does not see; needs ./console/build
                 before the programs are built
  guests         not part of the default: real guests on QEMU by Nova's libvirt driver, in a cloud of its own; a victim reads its
                 notice inside the guest, others stop or hibernate and come back (root, Debian's release)
  ports          not part of the default: servers whose ports have a minimum bandwidth, with Debian's Neutron, in a cloud of its own;
                 a normal one takes the bandwidth of a preemptible one (Debian's release)
  accelerators   not part of the default: servers with device profiles of Cyborg from PyPI, in a cloud of its own; a normal one gets
                 the device of a preemptible one (Debian's release)
  volumes        not part of the default: servers that boot from volumes of Debian's Cinder, as requests and as victims, and volumes
                 that are attached to victims, in a cloud of its own (Debian's release)
  horizon        not part of the default: our panels in Debian's Horizon and in the newest one, in Chromium: launch dialogue, notice,
                 early release, capacity, German; below / and below a folder
  same-original  not part of the default: the first with nova-scheduler twice; what differs then is chance or haste, not ours
Without parts: the first three, same-answers and those bad days that mostly wait in a second cloud beside the others ($stack_home-2);
--one-cloud runs all of them one after the other. --days: only these of the bad days. --short: same-answers, the short story and
the short bad days, which is what ./devstack/test runs. Recordings stay in recordings/ of the cloud that
made them.
X
}

stack_command_test() {
    local parts=() part one_cloud= report
    stack_test_release=debian
    stack_test_days=()
    stack_test_chapters=()
    while [ $# -gt 0 ]; do
        case $1 in
            -h|--help) _stack_test_usage; return 0 ;;
            --release) stack_test_release=$2; shift ;;
            --one-cloud) one_cloud=1 ;;
            --short) stack_test_chapters=(short); stack_test_days=(short) ;;
            --days) stack_test_days=("$2"); shift ;;
            accelerators|same-answers|same-original|story|slurm|batch|bad-days|cells|console|guests|horizon|ports|rotation|volumes) parts+=("$1") ;;
            *) echo "devstack/openstack test: unknown part $1 (see --help)" >&2; return 2 ;;
        esac
        shift
    done
    stack_test_failed=()
    stack_test_times=()
    stack_test_second=
    stack_test_up=()
    if [ ${#parts[@]} -gt 0 ]; then :
    elif [ -n "$one_cloud" ]; then parts=(same-answers story bad-days)
    else
        parts=(story bad-days)
        stack_build_ebbtide
        # The ports of the first are taken when the second looks for its own.
        _stack_test_cloud
        if [ ${#stack_test_chapters[@]} -gt 0 ]; then
            _stack_test_second_begins same-answers
        else
            stack_test_days=(busy)
            _stack_test_second_begins --days waiting same-answers bad-days
        fi
    fi
    for part in "${parts[@]}"; do "_stack_test_${part//-/_}"; done
    ./devstack/openstack down
    [ -z "$stack_test_second" ] || _stack_test_second_ends
    echo
    printf '%s\n' "${stack_test_times[@]}"
    if [ ${#stack_test_failed[@]} -gt 0 ]; then
        # Last, so that the end of a long log says why.
        for report in "$stack_home"{,-2}/{differences,shadow-faults}.txt; do
            [ ! -s "$report" ] || tail -n 30 -- "$report"
        done
        printf 'FAILED: %s\n' "${stack_test_failed[@]}" >&2
        return 1
    fi
    echo "All parts passed."
}

# _stack_test_second_begins OPTION… PART…: the same command for other parts, in a cloud of its own,
# in the background.
_stack_test_second_begins() {
    EBBTIDE_OPENSTACK_HOME=$stack_home-2 EBBTIDE_BIN_DIR=${EBBTIDE_BIN_DIR:-$stack_target/debug} \
        ./devstack/openstack test --release "$stack_test_release" "$@" > "$stack_home-2.log" 2>&1 &
    stack_test_second=$!
    # An interrupted test leaves no second cloud behind.
    trap 'if [ -n "$stack_test_second" ]; then
        kill "$stack_test_second" 2>/dev/null || true
        EBBTIDE_OPENSTACK_HOME=$stack_home-2 ./devstack/openstack down
    fi' EXIT
    echo "$* beside this, in $stack_home-2 (what it says: $stack_home-2.log)."
}

# In this shell, whose child it is.
_stack_test_second_ends() {
    local status=0 began=$SECONDS
    wait "$stack_test_second" || status=$?
    stack_test_second=
    sed 's/^/   | /' "$stack_home-2.log"
    _stack_note 'waiting for the second cloud' "$began" "$status"
}

# _stack_timed NAME COMMAND…: a step of the test. Notes how long it took and whether it failed, and
# goes on. The step runs in a shell of its own: it ends at its first command that fails, and leaves
# no variables. Never call this in a condition: bash ignores errexit there, also in all that is
# called, and the step would be judged by its last command.
_stack_timed() {
    local name=$1 began=$SECONDS status
    shift
    printf '\n==> %s\n' "$name"
    set +e
    (set -e; "$@")
    status=$?
    set -e
    _stack_note "$name" "$began" "$status"
}

# _stack_note NAME BEGAN STATUS: for the end of the test.
_stack_note() {
    [ "$3" -eq 0 ] || stack_test_failed+=("$1")
    stack_test_times+=("$(printf '%5d s  %s' $((SECONDS - $2)) "$1")")
}

# Dumps what Nova and Placement hold, so that several runs start from the same rows.
_stack_keep_databases() {
    mariadb-dump --no-defaults -uroot -S "$stack_run/mysql.sock" --databases placement glance nova_api nova_cell0 nova_cell1 > "$stack_home/first-day.sql"
}

# Nova and schedulers ended, the rows of the first day, Nova started again.
stack_first_day() {
    # shellcheck disable=SC2046 # a list of names
    stack_stop_each '' $(stack_names | grep -E '^(nova-|ebbtide-|tap)')
    stack_fresh_ledger
    stack_sql < "$stack_home/first-day.sql"
    stack_forget_queues
    stack_start_nova
}

# Messages of services that are gone must not meet the new ones.
stack_forget_queues() {
    stack_rabbitctl eval '[rabbit_amqqueue:delete(Q, false, false, <<"devstack">>) || Q <- rabbit_amqqueue:list()].' >/dev/null
}

# _stack_record WITH FOLDER: one pass of all scenarios.
_stack_record() {
    local folder=$stack_home/recordings/$2 status=0
    rm -rf -- "$folder" "$stack_home/tap.jsonl" "$stack_run/shadow.ready"
    mkdir -p "$folder"
    stack_first_day
    stack_rabbitctl trace_on >/dev/null
    stack_start tap "$stack_python" "$stack_tools/tap.py" "$port_tap" "$port_placement" "$stack_home/tap.jsonl"
    stack_wait_for 20 'the tap' tap stack_port_is_open "$port_tap"
    stack_start_scheduler "$1" 1 "$stack_etc/tap.conf"
    stack_wait_for_nova
    stack_wait_for 60 'the service record of the scheduler' '' stack_schedulers_are_up
    if [ -n "${stack_with_shadow:-}" ]; then _stack_shadow_begins; fi
    "$stack_python" "$stack_tools/record.py" "$folder" "$stack_home/tap.jsonl" || status=$?
    if [ -n "${stack_with_shadow:-}" ]; then _stack_shadow_ends; fi
    stack_rabbitctl trace_off >/dev/null
    stack_stop_schedulers
    stack_stop tap
    return $status
}

# The same with a shadow, whose report is kept.
_stack_record_with_shadow() {
    stack_with_shadow=1
    _stack_record "$@"
}

_stack_shadow_begins() {
    stack_start ebbtide-shadow "$(stack_ebbtide_bin)/ebbtide-scheduler" --config-file "$stack_etc/nova.conf" --shadow \
        --ready-file "$stack_run/shadow.ready" --log-file "$stack_log/ebbtide-shadow.log"
    stack_wait_for 60 'the shadow' ebbtide-shadow test -e "$stack_run/shadow.ready"
}

# It records what it knows, and only then is its report complete.
_stack_shadow_ends() {
    stack_stop ebbtide-shadow 30
    "$(stack_ebbtide_bin)/ebbtide-manage" shadow report --config-file "$stack_etc/nova.conf" -o json > "$stack_home/shadow.json"
    # One JSON text a line.
    stack_sql --raw -N -e 'SELECT record FROM ebbtide.decisions ORDER BY created_at' > "$stack_home/shadow-decisions.jsonl"
}

_stack_test_up() {
    ./devstack/openstack up --with none --fresh --release "$stack_test_release" --grace 2 --notifications --rpc-timeout 20 --sync-interval 20 --resources-interval 10 \
        ${stack_test_up[@]+"${stack_test_up[@]}"} | sed '/^$/,$d'
    _stack_test_knows_cloud
    _stack_keep_databases
}

# The variables of the cloud that is up.
_stack_test_knows_cloud() {
    stack_load_options
    stack_settings
    stack_release
    stack_t0=${EPOCHREALTIME//[!0-9]/}
    stack_nova_since=1970-01-01
}

# Once for all parts: they begin with the rows of its first day. Parts do nothing without it.
_stack_test_cloud() {
    if [ -z "${stack_test_is_up:-}" ]; then
        _stack_timed 'the cloud of the tests' _stack_test_up
        if [ ${#stack_test_failed[@]} -eq 0 ]; then
            _stack_test_knows_cloud
            stack_test_is_up=1
        fi
    fi
}

# _stack_part NAME COMMAND…: a step that needs the cloud; without one it has failed, and is said to.
_stack_part() {
    if [ -n "${stack_test_is_up:-}" ]; then
        _stack_timed "$@"
    else
        _stack_note "$1 (without a cloud)" "$SECONDS" 1
    fi
}

# The cloud with ours in it, as the operator of a new cloud gets it. What earlier parts have left in
# Nova's databases does no harm.
_stack_test_ours() {
    stack_stop_schedulers
    stack_fresh_ledger
    STACK_WITH=ebbtide
    stack_save_options
    stack_start_schedulers
    stack_wait_for_nova
    stack_wait_for 60 'the service record of the scheduler' '' stack_schedulers_are_up
}

_stack_test_needs_ours() {
    stack_build_ebbtide
    # The tools audit with it.
    if [ -z "${EBBTIDE_BIN_DIR:-}" ]; then cargo build --quiet --locked -p ebbtide-manage; fi
    STACK_EBBTIDE=$(stack_ebbtide_bin)/ebbtide-manage
    export STACK_EBBTIDE
    _stack_test_cloud
    if [ -z "${stack_test_has_ours:-}" ]; then
        _stack_part 'ours in the cloud' _stack_test_ours
        stack_load_options
        stack_test_has_ours=1
    fi
}

_stack_test_story() {
    if [ -z "${EBBTIDE_BIN_DIR:-}" ]; then cargo build --quiet --locked -p ebbtide-cli; fi
    _stack_test_needs_ours
    # What it leaves behind is a cloud as it was.
    _stack_part 'ours started before all of Nova' stack_tool started_first.py
    _stack_part 'the story' stack_tool story.py ${stack_test_chapters[@]+"${stack_test_chapters[@]}"}
}

_stack_test_needs_slurm() {
    ensure_packages slurm
    if [ -z "${EBBTIDE_BIN_DIR:-}" ]; then cargo build --quiet --locked -p ebbtide-batch-service -p ebbtide-cli; fi
    _stack_test_needs_ours
}

_stack_test_slurm() {
    _stack_test_needs_slurm
    _stack_part 'nodes of a Slurm cluster' stack_tool slurm_nodes.py
}

_stack_test_batch() {
    _stack_test_needs_slurm
    _stack_part 'batch work' stack_tool batch_nodes.py
}

_stack_test_console() {
    ensure_packages node chromium firefox
    [ -d console/node_modules ] || ./console/build
    _stack_test_needs_ours
    _stack_part 'the console in Chromium' _stack_test_in_console chromium
    _stack_part 'the console in Firefox' _stack_test_in_console firefox
}

# _stack_test_in_own_cloud TITLE TOOL OPTION…: a part in a cloud that `up` makes with these options,
# because the cloud of the other parts lacks what it needs.
_stack_test_in_own_cloud() {
    local title=$1 tool=$2
    shift 2
    stack_test_is_up= stack_test_has_ours=
    stack_test_up=("$@")
    _stack_test_needs_ours
    _stack_part "$title" stack_tool "$tool"
    stack_test_is_up= stack_test_has_ours=
    stack_test_up=()
}

_stack_test_guests() { _stack_test_in_own_cloud 'real guests' guests.py --libvirt; }
_stack_test_ports() { _stack_test_in_own_cloud 'bandwidth of ports' bandwidth.py --neutron debian; }
_stack_test_accelerators() { _stack_test_in_own_cloud 'accelerators of device profiles' accelerators.py --cyborg; }
_stack_test_volumes() { _stack_test_in_own_cloud 'volumes of Cinder' volumes.py --cinder; }

# _stack_test_in_console BROWSER: with the credentials of the cloud's administrator.
_stack_test_in_console() {
    . "$stack_home/openrc"
    EBBTIDE_BROWSER=$1 ./console/test openstack
}

_stack_test_horizon() {
    _stack_test_needs_ours
    _stack_part 'the panels of Horizon' _stack_test_in_horizon
}

_stack_test_in_horizon() {
    . "$stack_home/openrc"
    bash devstack/lib/horizon.sh --live
}

_stack_test_bad_days() {
    _stack_test_needs_ours
    _stack_part 'bad days' stack_tool bad_days.py ${stack_test_days[@]+"${stack_test_days[@]}"}
}

_stack_test_cells() {
    _stack_test_needs_ours
    _stack_part 'two cells' stack_tool cells.py
}

_stack_test_rotation() {
    _stack_test_needs_ours
    _stack_part 'rotation of passwords' stack_tool rotation.py
}

_stack_test_same_answers() {
    stack_build_ebbtide
    if [ -z "${EBBTIDE_BIN_DIR:-}" ]; then cargo build --quiet --locked -p ebbtide-manage; fi
    _stack_test_cloud
    # Recording ends the schedulers that it finds.
    stack_test_has_ours=
    _stack_part 'the scenarios with nova-scheduler' _stack_record_with_shadow nova-scheduler original
    _stack_part 'the shadow beside nova-scheduler' _stack_judge_shadow
    _stack_part 'the scenarios with ebbtide-scheduler' _stack_record ebbtide ours
    _stack_part 'the same answers' _stack_compare "$stack_home/recordings/original" "$stack_home/recordings/ours"
}

# Judges the report, and keeps what is wrong with it.
_stack_judge_shadow() {
    local said=$stack_home/shadow-faults.txt
    rm -f -- "$said"
    stack_tool shadow.py "$stack_home/shadow.json" "$stack_home/shadow-decisions.jsonl" > "$said" 2>&1 || { cat -- "$said"; return 1; }
    cat -- "$said"
    rm -- "$said"
}

# Compares, and keeps what differs.
_stack_compare() {
    rm -f -- "$stack_home/differences.txt"
    "$stack_python" "$stack_tools/compare.py" "$1" "$2" > "$stack_home/compare.txt" && { cat -- "$stack_home/compare.txt"; return 0; }
    cat -- "$stack_home/compare.txt"
    grep -v ' equal (' -- "$stack_home/compare.txt" > "$stack_home/differences.txt" || true
    return 1
}

_stack_test_same_original() {
    _stack_test_cloud
    stack_test_has_ours=
    _stack_part 'the scenarios with nova-scheduler' _stack_record nova-scheduler original
    _stack_part 'the scenarios with nova-scheduler again' _stack_record nova-scheduler original-again
    _stack_part 'the same answers' "$stack_python" "$stack_tools/compare.py" "$stack_home/recordings/original" "$stack_home/recordings/original-again"
}
