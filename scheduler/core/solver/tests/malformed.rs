//! What is refused, by its code; and what is an answer, not an error.
#![allow(clippy::expect_used, reason = "a helper of tests")]

use ebbtide_solver::{
    Budgets, CoverResult, EvictionCost, Infeasible, MAX_CANDIDATES, NO_BUDGET, Problem, Scratch,
    SearchLimits, TOTAL_AGE_LIMIT_MS, solve,
};

/// Two sound candidates in one class; each test spoils one thing.
const SOUND: Problem<'static> = Problem {
    deficit: &[3],
    resources: &[2, 2],
    costs: &[EvictionCost::from_micros(1), EvictionCost::from_micros(2)],
    ages_ms: &[1, 2],
    uuids: &[1, 2],
    budgets: Budgets::NONE,
    cutoff: None,
};

#[track_caller]
fn assert_refused(problem: &Problem<'_>, code: &str, names: &str) {
    let mut scratch = Scratch::new();
    let error = solve(problem, &mut scratch, SearchLimits::DEFAULT).expect_err("it is malformed");
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(names), "{error}");
}

#[test]
fn a_column_of_the_wrong_length_is_named() {
    assert_refused(
        &Problem {
            resources: &[2],
            ..SOUND
        },
        "EB-SOLVER-002",
        "`resources`",
    );
    assert_refused(
        &Problem {
            deficit: &[1, 1],
            ..SOUND
        },
        "EB-SOLVER-002",
        "`resources`",
    );
    assert_refused(
        &Problem {
            ages_ms: &[],
            ..SOUND
        },
        "EB-SOLVER-002",
        "`ages_ms`",
    );
    assert_refused(
        &Problem {
            uuids: &[1],
            ..SOUND
        },
        "EB-SOLVER-002",
        "`uuids`",
    );
    let budgets = Budgets {
        limits: &[1],
        keys_per_candidate: 2,
        keys: &[0, 0, 0],
    };
    assert_refused(
        &Problem { budgets, ..SOUND },
        "EB-SOLVER-002",
        "`budgets.keys`",
    );
}

#[test]
fn a_negative_amount_is_named() {
    let problem = Problem {
        resources: &[2, -7],
        ..SOUND
    };
    assert_refused(
        &problem,
        "EB-SOLVER-003",
        "candidate 1 has -7 of resource class 0",
    );
}

#[test]
fn costs_that_would_overflow_are_refused() {
    let half = EvictionCost::from_micros(EvictionCost::TOTAL_LIMIT.micros() / 2 + 1);
    assert_refused(
        &Problem {
            costs: &[half, half],
            ..SOUND
        },
        "EB-SOLVER-004",
        "scale",
    );
    assert_refused(
        &Problem {
            costs: &[EvictionCost::MAX, EvictionCost::MAX],
            ..SOUND
        },
        "EB-SOLVER-004",
        "scale",
    );
}

#[test]
fn ages_that_would_overflow_are_refused() {
    assert_refused(
        &Problem {
            ages_ms: &[TOTAL_AGE_LIMIT_MS, 1],
            ..SOUND
        },
        "EB-SOLVER-005",
        "ms",
    );
    assert_refused(
        &Problem {
            ages_ms: &[u64::MAX; 2],
            ..SOUND
        },
        "EB-SOLVER-005",
        "ms",
    );
}

#[test]
fn more_candidates_than_can_be_counted_are_refused() {
    let n = MAX_CANDIDATES + 1;
    let problem = Problem {
        resources: &vec![1; n],
        costs: &vec![EvictionCost::ZERO; n],
        ages_ms: &vec![0; n],
        uuids: &vec![0; n],
        ..SOUND
    };
    assert_refused(&problem, "EB-SOLVER-006", "16384");
}

#[test]
fn a_budget_that_does_not_exist_is_named() {
    let budgets = Budgets {
        limits: &[1],
        keys_per_candidate: 1,
        keys: &[NO_BUDGET, 1],
    };
    assert_refused(
        &Problem { budgets, ..SOUND },
        "EB-SOLVER-007",
        "candidate 1 belongs to budget 1",
    );
}

#[track_caller]
fn assert_outcome(problem: &Problem<'_>, expected: CoverResult<'_>) {
    for limits in [
        SearchLimits::DEFAULT,
        SearchLimits {
            quick_nodes: 0,
            ..SearchLimits::DEFAULT
        },
    ] {
        let mut scratch = Scratch::new();
        assert_eq!(solve(problem, &mut scratch, limits), Ok(expected));
    }
}

#[test]
fn no_deficit_needs_no_victim() {
    assert_outcome(
        &Problem {
            deficit: &[0],
            ..SOUND
        },
        CoverResult::NotNeeded,
    );
    assert_outcome(
        &Problem {
            deficit: &[i64::MIN],
            ..SOUND
        },
        CoverResult::NotNeeded,
    );
    assert_outcome(
        &Problem {
            deficit: &[],
            resources: &[],
            ..SOUND
        },
        CoverResult::NotNeeded,
    );
}

#[test]
fn too_little_and_only_budgets_are_told_apart() {
    let not_enough = CoverResult::Infeasible(Infeasible::NotEnough);
    assert_outcome(
        &Problem {
            deficit: &[5],
            ..SOUND
        },
        not_enough,
    );
    let no_candidates = Problem {
        resources: &[],
        costs: &[],
        ages_ms: &[],
        uuids: &[],
        ..SOUND
    };
    assert_outcome(&no_candidates, not_enough);

    let only_budgets = CoverResult::Infeasible(Infeasible::Budgets);
    let one = Budgets {
        limits: &[1],
        keys_per_candidate: 1,
        keys: &[0, 0],
    };
    assert_outcome(
        &Problem {
            budgets: one,
            ..SOUND
        },
        only_budgets,
    );
    let protected = Budgets {
        limits: &[0],
        ..one
    };
    assert_outcome(
        &Problem {
            budgets: protected,
            ..SOUND
        },
        only_budgets,
    );
    // Not enough even without budgets stays not enough.
    assert_outcome(
        &Problem {
            budgets: protected,
            deficit: &[5],
            ..SOUND
        },
        not_enough,
    );
}

#[test]
fn a_key_named_twice_counts_once() {
    let budgets = Budgets {
        limits: &[2],
        keys_per_candidate: 2,
        keys: &[0, 0, 0, NO_BUDGET],
    };
    let mut scratch = Scratch::new();
    let outcome = solve(
        &Problem { budgets, ..SOUND },
        &mut scratch,
        SearchLimits::DEFAULT,
    );
    assert!(matches!(outcome, Ok(CoverResult::Solved(solution)) if solution.victims == [0, 1]));
}
