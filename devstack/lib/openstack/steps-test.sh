#!/usr/bin/env bash
# Whether a step of `devstack/openstack test` that fails in its middle is noticed. Starts nothing.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../../.."
. devstack/lib/openstack/test.sh

good() { true; }
fails_in_the_middle() { false; echo "went on after a failure"; }
fails_deeper() { fails_in_the_middle; true; }
fails_in_a_pipe() { false | cat; true; }
fails_before_and_in_a_condition() { if ! good; then return 1; fi; fails_in_the_middle; }
leaves_a_variable() { left_by_a_step=1; }

stack_test_failed=()
stack_test_times=()
steps=(good fails_in_the_middle fails_deeper fails_in_a_pipe fails_before_and_in_a_condition leaves_a_variable)
said=$(mktemp)
trap 'rm -f -- "$said"' EXIT
for step in "${steps[@]}"; do _stack_timed "$step" "$step"; done > "$said"

wrong=()
[ "${stack_test_failed[*]}" = 'fails_in_the_middle fails_deeper fails_in_a_pipe fails_before_and_in_a_condition' ] || wrong+=("these failed: ${stack_test_failed[*]-none}")
! grep -q 'went on' "$said" || wrong+=("a step went on after its failure")
[ ${#stack_test_times[@]} -eq ${#steps[@]} ] || wrong+=("${#stack_test_times[@]} of ${#steps[@]} steps were timed")
[[ $- == *e* ]] || wrong+=("errexit is off after a step")

# Without its cloud no part passes.
stack_test_failed=()
unset stack_test_is_up
_stack_part 'a part' good
[ "${stack_test_failed[*]}" = 'a part (without a cloud)' ] || wrong+=("a part passed without a cloud: ${stack_test_failed[*]-none}")

[ ${#wrong[@]} -eq 0 ] || { printf 'steps-test: %s\n' "${wrong[@]}" >&2; exit 1; }
echo "Steps of the OpenStack test that fail are noticed."
