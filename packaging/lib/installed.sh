#!/usr/bin/env bash
# Steps of ./packaging/test that look at what is installed; steps.sh has the others and reads this
# file. Each check also looks at something that is wrong, which it has to find.

# What our packages have under a path.
packaged() { # PATTERN
    local package path
    for package in $(dpkg-query -W -f '${Package}\n' 'ebbtide-*'); do
        for path in $(dpkg -L "$package"); do
            # shellcheck disable=SC2254 # A pattern.
            case $path in $1) printf '%s\n' "$path" ;; esac
        done
    done
}

# All warnings of groff for a page, and mandoc's from errors on. Empty: none.
page_warnings() { # FILE
    MANWIDTH=80 man --warnings --encoding=UTF-8 --local-file --troff-device=utf8 --ditroff "$1" \
        2>&1 >/dev/null || echo "man has failed"
    mandoc -T lint -W error "$1" 2>&1 || true
}

# Each program has a page. All pages render, and those that they name are there.
pages() {
    local program page count=0 name title
    printf '.TH bad 1\n.SH NAME\nbad \\- bad\n.nosuchmacro\n' >bad.1
    [ -n "$(page_warnings ./bad.1)" ] || fail "a page with an unknown macro has no warning"
    echo 'ebbtide-nosuch(1)' >named
    for program in $(packaged '/usr/bin/*'); do
        man -w "${program##*/}" >/dev/null || fail "$program has no manual page"
    done
    for page in $(packaged '/usr/share/man/man*/*.gz'); do
        count=$((count + 1))
        page_warnings "$page" >warnings
        [ ! -s warnings ] || { cat warnings; fail "$page"; }
        zcat "$page" | sed 's/\\-/-/g' | grep -oE 'ebbtide[a-z-]*\([0-9]\)' >>named || true
        title=$(MANWIDTH=200 man --pager=cat --local-file "$page" 2>/dev/null | sed -n '/./{p;q}')
        name=${page##*/}
        case $title in "${name%%.*}("*) ;; *) fail "$page has the title $title" ;; esac
    done
    while read -r name; do
        page=${name%%(*}.${name: -2:1}
        [ -e "/usr/share/man/man${page##*.}/$page.gz" ] || echo "$name"
    done < <(sort -u named) >missing
    [ "$(cat missing)" = 'ebbtide-nosuch(1)' ] ||
        { cat missing; fail "manual pages name pages that are not there"; }
    [ "$count" -gt 100 ] || fail "only $count manual pages"
    echo "$count manual pages: no warning of groff, no error of mandoc, no page that is not there"
}

# What a shell offers after a program's name and the beginning of a word, one a line.
offered_by_bash() { # PROGRAM WORD
    bash -c '
        . /usr/share/bash-completion/bash_completion
        # The name of the loader until 2.11, and since.
        if declare -F _comp_load >/dev/null; then _comp_load "$1"; else _completion_loader "$1"; fi
        function=$(complete -p "$1" | sed -n "s/.* -F \([^ ]*\) .*/\1/p")
        COMP_WORDS=("$1" "$2") COMP_CWORD=1 COMP_LINE="$1 $2"
        COMP_POINT=${#COMP_LINE}
        "$function" "$1" "$2" "$1"
        printf "%s\n" "${COMPREPLY[@]}"' - "$1" "$2"
}
offered_by_fish() { # PROGRAM WORD
    fish --command "complete --do-complete '$1 $2'" | cut -f 1
}
# zsh completes in its line editor only: what it has loaded for the program.
offered_by_zsh() { # PROGRAM
    zsh -f -c '
        autoload -Uz compinit && compinit -u -d /tmp/zcompdump || exit 1
        autoload -Uz +X "${_comps[$1]}" || exit 1
        functions "${_comps[$1]}"' - "$1"
    rm -f /tmp/zcompdump
}

completions() {
    local program name shell
    for program in $(packaged '/usr/bin/*'); do
        name=${program##*/}
        for shell in bash fish zsh; do
            "offered_by_$shell" "$name" --h >offered 2>complaints ||
                { cat complaints; fail "$shell cannot complete $name"; }
            [ ! -s complaints ] ||
                { cat complaints; fail "$shell complains about the completions of $name"; }
            grep -q -e '--help' offered ||
                { cat offered; fail "$shell does not complete $name --h"; }
        done
    done
    for shell in bash fish; do
        [ "$("offered_by_$shell" ebbtide serv)" = server ] ||
            fail "$shell does not complete 'ebbtide serv' to server"
    done
    for shell in bash fish zsh; do
        if "offered_by_$shell" ebbtide-nosuch --h 2>/dev/null | grep -q -e '--help'; then
            fail "$shell completes a program that is not there"
        fi
    done
    echo "$(packaged '/usr/bin/*' | wc -l) programs are completed by bash" \
        "$(bash -c 'echo "${BASH_VERSION%%(*}"'), $(fish --version | sed 's/, version//')" \
        "and $(zsh --version | cut -d ' ' -f 1,2)"
}

# Files with a text of the file secrets in them that any user can read.
readable_with_secret() {
    local secret nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
    while read -r secret; do
        # /proc is looked at by itself. Packages of others have the same word in their tests.
        "${nobody[@]}" find / \( -path /proc -o -path /sys -o -path /dev -o -path /usr/lib \
            -o -path /usr/share \) -prune \
            -o -type f -readable -print0 2>/dev/null |
            "${nobody[@]}" xargs -0r grep -lsF -e "$secret" || true
    done <secrets
}

# Whether systemd tells every user a secret that is in the properties of units.
shown_secret() { systemctl show "$@" | grep -F -f secrets >/dev/null; }

# The passwords of broker, database and batch service, and where they must not be.
secrets() {
    local unit found
    umask 077
    { echo swordfish; cat /etc/ebbtide/credentials/batch/token_file; echo; } >secrets
    [ "$(grep -c . secrets)" = 2 ] || fail "there are not two secrets"

    ! grep -qF -f secrets /etc/ebbtide/*.toml || fail "a configuration file has a password"
    for unit in scheduler@a scheduler@b agent batch; do
        # The unit's file: systemd 252 does not print this property.
        systemctl cat "ebbtide-$unit" |
            grep -x "LoadCredential=ebbtide:/etc/ebbtide/credentials/${unit%@*}" >/dev/null ||
            fail "ebbtide-$unit has no LoadCredential"
        grep -rqF -f secrets "/run/credentials/ebbtide-$unit.service" ||
            fail "the passwords of ebbtide-$unit do not come by LoadCredential"
    done
    echo swordfish >/var/tmp/leak
    chmod 644 /var/tmp/leak
    found=$(readable_with_secret)
    [ "$found" = /var/tmp/leak ] ||
        { echo "$found"; fail "not just /var/tmp/leak has a password that any user can read"; }
    rm /var/tmp/leak

    systemd-run --quiet --unit=leak --setenv=SECRET=swordfish sleep 1000
    shown_secret leak || fail "the check does not see a password in the environment of a unit"
    grep -lsF -f secrets /proc/[0-9]*/environ >/dev/null ||
        fail "the check does not see a password in the environment of a process"
    systemctl stop leak
    if shown_secret '*' || shown_secret 'ebbtide-*'; then fail "systemctl show has a password"; fi
    ! grep -lsF -f secrets /proc/[0-9]*/environ /proc/[0-9]*/cmdline ||
        fail "the environment or the command line of a process has a password"
    ! journalctl -q -o cat -u 'ebbtide-*' | grep -F -f secrets || fail "the journal has a password"
    rm secrets
    echo "passwords come by LoadCredential; no file that others read has one, no environment," \
        "no command line, no property of a unit, no line of the journal"
}

# New passwords by `systemctl reload`: systemd copies credentials at the start of a service only.
renew() {
    local port pid old units='ebbtide-scheduler@a ebbtide-scheduler@b ebbtide-agent'
    # shellcheck disable=SC2086 # Three units.
    main_pids() { systemctl show -P MainPID $units; }
    pid=$(main_pids)
    shown 'rabbitmqctl -q change_password ebbtide marlinspike'
    shown 'sed -i s/swordfish/marlinspike/ /etc/ebbtide/credentials/{scheduler,agent}/bus.urls'
    shown "systemctl reload $units"
    # A connection stays, whatever its password has become.
    old=$(rabbitmqctl -s list_connections pid | sort)
    rabbitmqctl -q close_all_user_connections ebbtide rotated
    connected() {
        local now
        now=$(rabbitmqctl -s list_connections pid | sort)
        [ "$(wc -l <<<"$now")" -ge 3 ] && [ -z "$(comm -12 <(echo "$old") <(echo "$now"))" ]
    }
    until_true 60 connected
    for port in 7471 7481 7472; do
        until_true 60 curl -sSf "http://127.0.0.1:$port/readyz"
    done
    [ "$(main_pids)" = "$pid" ] || fail "a reload has restarted a service"
    grep -rqF marlinspike /run/ebbtide-credentials ||
        fail "the new password is not in /run/ebbtide-credentials"
    [ -z "$(find /run/ebbtide-credentials -type f -perm /077)" ] ||
        fail "others can read passwords in /run/ebbtide-credentials"
    echo "the same processes use the new password"
}

# What dpkg finds changed: the configuration files that the steps have written, and nothing else.
verified() {
    local package
    for package in $(dpkg-query -W -f '${Package}\n' 'ebbtide-*' 'python3-ebbtide*'); do
        dpkg --verify "$package"
    done | sed 's/.* //' | sort >changed
    printf '%s\n' /etc/ebbtide/agent.toml /etc/ebbtide/batch.toml | diff - changed ||
        fail "dpkg --verify"
    echo "dpkg --verify: nothing but agent.toml and batch.toml, which were edited"
}

# What an installation may have made besides files, and files that bear our name. A database of
# MariaDB stays.
left() {
    dpkg-query -W -f '${Package} ${Status}\n' 'ebbtide-*' 'python3-ebbtide*' 2>/dev/null |
        grep -v ' not-installed$' || true
    # Their exit code says that there is none.
    systemctl list-unit-files --no-legend 'ebbtide*' || true
    systemctl list-units --all --no-legend 'ebbtide*' || true
    find / \( -path /proc -o -path /sys -o -path /dev -o -path /root -o -path /var/lib/mysql \) \
        -prune -o -iname '*ebbtide*' -print
    pgrep -a ebbtide || true
    find / -xdev \( -nouser -o -nogroup \) -not -path '/root/*' -print
}
