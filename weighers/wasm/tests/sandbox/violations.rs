//! Each thing that a plugin must not do, and what is said of it.

use super::kit::{failure, settings, try_weigher, weigh, weigher, weigher_guest};
use ebbtide_wasm::{Grants, SandboxLimits};
use std::sync::Arc;

#[test]
fn a_panic_ends_the_call_and_its_words_are_told() {
    let said = failure(&[("do", "panic")]);
    assert!(
        said.contains("panicked") && said.contains("I was told to"),
        "{said}"
    );
}

#[test]
fn an_endless_loop_ends_when_its_work_is_used_up() {
    let said = failure(&[("do", "loop")]);
    assert!(
        said.contains("used up its 20060000 units of work"),
        "{said}"
    );
}

#[test]
fn endless_recursion_ends_with_the_stack() {
    let said = failure(&[("do", "recurse")]);
    assert!(said.contains("used up its stack"), "{said}");
}

#[test]
fn a_memory_bomb_gets_no_further_than_its_limit() {
    let said = failure(&[("do", "memory")]);
    assert!(
        said.contains("wanted more memory than its 65536 KiB"),
        "{said}"
    );
}

#[test]
fn a_wrong_number_of_numbers_is_a_failure() {
    assert_eq!(failure(&[("do", "short")]), "gave 2 numbers for 3 rows");
    assert_eq!(failure(&[("do", "long")]), "gave 4 numbers for 3 rows");
}

#[test]
fn its_own_error_is_told_in_its_words() {
    assert_eq!(failure(&[("do", "error")]), "says: I have no opinion");
}

#[test]
fn numbers_that_are_none_come_through_for_the_engine_to_refuse() {
    let numbers = weigh(&weigher(&[("do", "nan")]), 2).unwrap();
    assert!(numbers.iter().all(|number| number.is_nan()));
    let numbers = weigh(&weigher(&[("do", "infinity")]), 2).unwrap();
    assert_eq!(numbers, [f64::INFINITY; 2]);
}

#[test]
fn there_are_no_clock_no_sleep_no_exit() {
    for (what, word) in [
        ("time", "wall-clock"),
        ("instant", "monotonic-clock"),
        ("sleep", "monotonic-clock"),
    ] {
        let said = failure(&[("do", what)]);
        assert!(
            said.contains(word) && said.contains("not granted"),
            "{what}: {said}"
        );
    }
    let said = failure(&[("do", "exit")]);
    assert!(said.contains("it called exit"), "{said}");
}

#[test]
fn there_are_no_files_no_network_no_environment() {
    for what in ["file", "environment"] {
        assert_eq!(
            weigh(&weigher(&[("do", what)]), 1).unwrap(),
            [0.0],
            "{what}"
        );
    }
    let said = failure(&[("do", "network")]);
    assert!(said.contains("wasi:sockets"), "{said}");
}

#[test]
fn a_granted_clock_is_read_and_nothing_else_is_granted_by_it() {
    let grants = Grants {
        clock: Some(Arc::new(|| 1_500_000_000)),
        randomness: None,
    };
    let weigher = weigher_guest()
        .weigher(
            "n",
            &settings(&[("do", "time")]),
            SandboxLimits::default(),
            grants.clone(),
        )
        .unwrap();
    assert_eq!(weigh(&weigher, 1).unwrap(), [1.5]);
    let network = weigher_guest()
        .weigher(
            "n",
            &settings(&[("do", "network")]),
            SandboxLimits::default(),
            grants,
        )
        .unwrap();
    assert!(weigh(&network, 1).is_err());
}

#[test]
fn random_numbers_are_the_same_in_every_call_unless_they_are_granted() {
    let same = weigher(&[("do", "random")]);
    assert_eq!(weigh(&same, 1).unwrap(), weigh(&same, 1).unwrap());
    let grants = Grants {
        clock: None,
        randomness: Some(Arc::new(|bytes| bytes.fill(7))),
    };
    let other = weigher_guest()
        .weigher(
            "n",
            &settings(&[("do", "random")]),
            SandboxLimits::default(),
            grants,
        )
        .unwrap();
    assert_ne!(weigh(&same, 1).unwrap(), weigh(&other, 1).unwrap());
}

#[test]
fn nothing_is_remembered_from_one_call_to_the_next() {
    let weigher = weigher(&[("do", "remember")]);
    for _ in 0..3 {
        assert_eq!(weigh(&weigher, 1).unwrap(), [0.0]);
    }
}

#[test]
fn after_each_misdeed_the_next_call_is_like_the_first() {
    let naughty = weigher(&[("do", "memory")]);
    let good = weigher(&[("do", "sum"), ("needs", "free_vcpus")]);
    for _ in 0..3 {
        assert!(weigh(&naughty, 2).is_err());
        assert_eq!(weigh(&good, 3).unwrap(), [0.0, 1.0, 2.0]);
    }
}

#[test]
fn who_misbehaves_while_it_describes_itself_is_refused() {
    for what in ["panic", "loop", "memory", "error"] {
        let refused = try_weigher(&[("when", "describe"), ("do", what)])
            .unwrap_err()
            .to_string();
        assert!(
            refused.starts_with("it does not describe itself: "),
            "{what}: {refused}"
        );
    }
}
