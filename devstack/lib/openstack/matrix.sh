#!/usr/bin/env bash
# devstack/openstack matrix: the tests on each release of OpenStack, and a table of what passed.

_stack_matrix_usage() { cat <<X
./devstack/openstack matrix [--long] [RELEASE…]

Brings up a cloud of each release, one after the other, runs the scenarios against nova-scheduler and against ours and compares
the answers, runs the story (boots, moves, preemptions, evacuations), and wipes the cloud. Without a release: Debian's and all
that releases/ names. --long: the whole story and the bad days, too; else the short story.

The table is in $stack_home-matrix/matrix.md: a row for each release, which the next run of that release replaces. What a run
said is in RELEASE.log beside it. The command fails if a release fails, after all of them have run.
X
}

stack_command_matrix() {
    local releases=() release failed=() parts=(same-answers story) short=(--short) folder=$stack_home-matrix
    while [ $# -gt 0 ]; do
        case $1 in
            -h|--help) _stack_matrix_usage; return 0 ;;
            --long) short=() parts+=(bad-days) ;;
            -*) echo "devstack/openstack matrix: unknown option $1 (see --help)" >&2; return 2 ;;
            *) STACK_RELEASE=$1; stack_release; releases+=("$STACK_RELEASE") ;;
        esac
        shift
    done
    [ ${#releases[@]} -gt 0 ] || releases=(debian $(stack_known_releases))
    mkdir -p "$folder/rows"
    stack_build_ebbtide
    for release in "${releases[@]}"; do
        printf '\n==> %s\n' "$release"
        if EBBTIDE_OPENSTACK_HOME=$folder/cloud EBBTIDE_BIN_DIR=$(stack_ebbtide_bin) \
            ./devstack/openstack test --release "$release" --one-cloud ${short[@]+"${short[@]}"} "${parts[@]}" > "$folder/$release.log" 2>&1
        then _stack_matrix_row "$release" passed > "$folder/rows/$release"
        else
            failed+=("$release")
            _stack_matrix_row "$release" "failed: $(_stack_matrix_failures "$folder/$release.log")" > "$folder/rows/$release"
        fi
        EBBTIDE_OPENSTACK_HOME=$folder/cloud ./devstack/openstack down --wipe >> "$folder/$release.log" 2>&1
        cat -- "$folder/rows/$release"
    done
    {
        echo '| release | Nova | Placement | Keystone | oslo.messaging | same answers | parts | result | date |'
        echo '|---|---|---|---|---|---|---|---|---|'
        sort -t '|' -k 3 -V "$folder"/rows/*
    } > "$folder/matrix.md"
    echo
    cat -- "$folder/matrix.md"
    if [ ${#failed[@]} -gt 0 ]; then
        printf 'FAILED: %s\n' "${failed[*]}" >&2
        return 1
    fi
}

# _stack_matrix_row RELEASE RESULT: one line of the table.
_stack_matrix_row() {
    local same
    STACK_RELEASE=$1
    stack_release
    # The line of compare.py that counts.
    same=$(grep -oE '[0-9]+ of [0-9]+ scenarios equal' "$stack_home-matrix/$1.log" | tail -n 1)
    printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s, %s |\n' "$1" \
        "$(_stack_matrix_version nova python3-nova)" "$(_stack_matrix_version openstack-placement python3-placement)" \
        "$(_stack_matrix_version keystone python3-keystone)" "$(_stack_matrix_version oslo-messaging python3-oslo.messaging)" \
        "${same:--}" "$(_stack_matrix_parts "$1")" "$2" "$(date -u +%F)" "$(git rev-parse --short=8 HEAD)"
}

# _stack_matrix_version PYPI_NAME DEBIAN_NAME
_stack_matrix_version() {
    if [ "$STACK_RELEASE" = debian ]; then dpkg-query -W -f '${Version}' "$2" | sed 's/^[0-9]*://; s/-.*//'
    else sed -n "s/^$1==//p" "$_stack_releases/$STACK_RELEASE.txt"
    fi
}

# What ran, by the times at the end of the log.
_stack_matrix_parts() {
    sed -nE 's/^ *([0-9]+) s  (the scenarios with ebbtide-scheduler|the story|bad days)$/\2 \1 s/p' "$stack_home-matrix/$1.log" |
        sed 's/the scenarios with ebbtide-scheduler/scenarios/; s/the story/story/' | paste -s -d ',' | sed 's/,/, /g'
}

_stack_matrix_failures() { sed -n 's/^FAILED: //p' "$1" | paste -s -d ',' | sed 's/,/, /g' | grep . || tail -n 1 -- "$1"; }
