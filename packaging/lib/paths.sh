#!/usr/bin/env bash
# Compiler flags for programs that are the same wherever they are compiled: without the paths of the
# checkout, of cargo's home and of the toolchain. ./packaging/build and ./packaging/reproduce
# compile with them.

# paths_hide CHECKOUT TARGET: exports the flags for a compilation of CHECKOUT into TARGET.
paths_hide() {
    local cargo=${CARGO_HOME:-$HOME/.cargo} sysroot commit
    sysroot=$(rustc --print sysroot)
    commit=$(rustc --version --verbose | sed -n 's/^commit-hash: //p')
    # The last match of a path counts (rustc's book, "Remap source paths"), so the longest is last.
    local from=("$cargo" "$1" "$2" "$sysroot/lib/rustlib/src/rust")
    local to=(/usr/src/cargo /usr/src/ebbtide /usr/src/ebbtide/target "/rustc/$commit")
    local i rust=() c=
    for i in "${!from[@]}"; do
        rust+=("--remap-path-prefix=${from[i]}=${to[i]}")
        c+=" -ffile-prefix-map=${from[i]}=${to[i]}"
    done
    # Functions of the same machine code become one. Only the toolchain's own linker for x86-64
    # (lld) can do it. Rust promises no function an address of its own.
    [ "$(uname -m)" != x86_64 ] || rust+=(-Clink-arg=-Wl,--icf=all)
    # Separated by a character that no path has (cargo's book, "Environment variables").
    CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; printf '%s' "${rust[*]}")
    export CARGO_ENCODED_RUSTFLAGS
    # SQLite, ring and others are C: their build scripts ask for these.
    export CFLAGS="${CFLAGS:-}$c" CXXFLAGS="${CXXFLAGS:-}$c"
}

# What ./packaging/build compiles. Not the whole workspace: tests ask for fail points, which would
# get into the programs. Cargo unites the features of all of these, so one program alone may come
# out otherwise.
paths_compile() { # ARGUMENT OF CARGO…
    cargo build --release --locked -p ebbtide-scheduler -p ebbtide-agent -p ebbtide-cli \
        -p ebbtide-manage -p ebbtide-lab -p ebbtide-batch-service -p ebbtide-pages "$@"
}
