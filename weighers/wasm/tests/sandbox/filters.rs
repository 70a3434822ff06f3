//! Filters as components: what they answer, and what comes of what they must not do.

use super::kit::{filter, filter_guest, sandbox, settings, weigher_guest};
use ebbtide_wasm::{Grants, Kind, SandboxLimits, WasmError, WasmFilter};

fn try_filter(pairs: &[(&str, &str)]) -> Result<WasmFilter, WasmError> {
    filter_guest().filter(
        "naughty",
        &settings(pairs),
        SandboxLimits::default(),
        Grants::default(),
    )
}

fn failure(pairs: &[(&str, &str)]) -> String {
    filter(&try_filter(pairs).unwrap(), 4)
        .unwrap_err()
        .to_string()
}

/// Made in November 2026 for `ebbtide:plugin@1.0.0`: the example `noisy_neighbours` as it was then.
/// It must run for ever.
const FIRST: &[u8] = include_bytes!("../fixtures/filter-1.0.wasm");

#[test]
fn the_first_filter_that_was_ever_made_runs() {
    let first = sandbox().compile(FIRST).unwrap();
    assert_eq!(first.kind(), Kind::Filter);
    let none = settings(&[]);
    let limits = SandboxLimits::default();
    let noisy = first
        .filter("noisy", &none, limits, Grants::default())
        .unwrap();
    assert_eq!(noisy.reads(), ["number:noise", "has:noise"]);
}

#[test]
fn a_filter_answers_for_each_host_with_its_reason() {
    assert_eq!(filter_guest().kind(), Kind::Filter);
    let few = try_filter(&[("do", "few"), ("needs", "free_vcpus")]).unwrap();
    let verdicts = filter(&few, 4).unwrap();
    let passed: Vec<bool> = (0..4).map(|at| verdicts.passes(at)).collect();
    assert_eq!(passed, [false, false, true, true]);
    assert_eq!(verdicts.reason(1), Some("too few processors"));
    assert_eq!(
        filter(&few, 4).unwrap(),
        verdicts,
        "it does not change its mind"
    );
}

#[test]
fn an_answer_for_half_of_the_hosts_or_without_its_reason_is_a_failure() {
    assert_eq!(failure(&[("do", "half")]), "gave 2 answers for 4 hosts");
    assert_eq!(
        failure(&[("do", "unreasonable")]),
        "refuses host number 0 for reason 2, and gave 1 reasons"
    );
}

#[test]
fn an_endless_loop_a_panic_and_a_memory_bomb_end_the_call() {
    for (what, words) in [
        ("loop", "used up its 20080000 units of work"),
        ("panic", "panicked"),
        ("memory", "wanted more memory than its 65536 KiB"),
        ("error", "says: I have no opinion"),
        ("time", "the clock is not granted"),
    ] {
        let said = failure(&[("do", what)]);
        assert!(said.contains(words), "{what}: {said}");
    }
}

#[test]
fn nothing_is_remembered_so_a_filter_cannot_change_its_mind() {
    // It would refuse every second call if it could count them.
    let counts = try_filter(&[("do", "remember")]).unwrap();
    for _ in 0..3 {
        assert_eq!(filter(&counts, 2).unwrap().refused(), 0);
    }
}

#[test]
fn what_is_known_behind_the_filters_only_cannot_be_read() {
    for late in ["preemption_needed", "eviction_cost", "eviction_victims"] {
        let refused = try_filter(&[("needs", late)]).unwrap_err().to_string();
        assert!(
            refused.contains(late) && refused.contains("behind the filters"),
            "{refused}"
        );
    }
}

#[test]
fn a_weigher_is_no_filter() {
    let refused = weigher_guest().filter(
        "n",
        &settings(&[]),
        SandboxLimits::default(),
        Grants::default(),
    );
    assert_eq!(
        refused.unwrap_err().to_string(),
        "it is a weigher, and a filter is wanted"
    );
}
