use super::*;
use uuid::Uuid;

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1000)
}

fn terms(deadline: ReclaimDeadline) -> ReclaimTerms {
    ReclaimTerms {
        owner: "slurm:1".to_owned(),
        reason: "job".to_owned(),
        deadline,
        max_cost: None,
    }
}

#[test]
fn the_same_terms_keep_the_deadline_and_others_move_it() {
    let reclaim = Reclaim::new(terms(ReclaimDeadline::After(Seconds(60))), None, at(100));
    let again = reclaim
        .renewed("h", reclaim.terms.clone(), at(130))
        .unwrap();
    assert_eq!(again, reclaim);
    let longer = terms(ReclaimDeadline::After(Seconds(90)));
    let later = reclaim.renewed("h", longer, at(130)).unwrap();
    assert_eq!((later.since, later.deadline), (at(100), Some(at(220))));
}

#[test]
fn another_owner_is_refused() {
    let reclaim = Reclaim::new(terms(ReclaimDeadline::None), None, at(100));
    let other = ReclaimTerms {
        owner: "maintenance".to_owned(),
        ..terms(ReclaimDeadline::None)
    };
    let refused = reclaim.renewed("h", other, at(130)).unwrap_err();
    assert_eq!(refused.owner, "slurm:1");
}

#[test]
fn the_grace_period_is_the_servers_own_and_never_longer_than_the_deadline() {
    let grace = |deadline, own, now| {
        Reclaim::new(terms(deadline), None, at(100)).grace(Seconds(own), at(now))
    };
    assert_eq!(grace(ReclaimDeadline::None, 120, 100), Seconds(120));
    let minute = ReclaimDeadline::After(Seconds(60));
    assert_eq!(grace(minute, 120, 100), Seconds(60));
    assert_eq!(grace(minute, 30, 100), Seconds(30));
    assert_eq!(grace(minute, 30, 150), Seconds(10));
    assert_eq!(grace(minute, 30, 500), Seconds(0));
}

#[test]
fn a_server_is_charged_once_and_the_budget_is_that_of_all() {
    let server = |n| ServerId(Uuid::from_u128(n));
    let mut reclaim = Reclaim::new(terms(ReclaimDeadline::None), None, at(100));
    reclaim.terms.max_cost = Some(10.0);
    reclaim.charge(server(1), 6.0);
    assert!(reclaim.affords(server(2), 4.0));
    assert!(!reclaim.affords(server(2), 4.5));
    assert!(
        reclaim.affords(server(1), 9.0),
        "its evacuation begins again"
    );
    reclaim.charge(server(1), 7.0);
    assert!((reclaim.cost() - 7.0).abs() < f64::EPSILON);
}

#[test]
fn terms_out_of_range_are_refused() {
    let refused = |change: &dyn Fn(&mut ReclaimTerms)| {
        let mut terms = terms(ReclaimDeadline::After(Seconds(60)));
        change(&mut terms);
        terms.check(at(100)).is_err()
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|t| t.owner = String::new()));
    assert!(refused(&|t| t.reason = "x".repeat(101)));
    assert!(refused(&|t| t.deadline = ReclaimDeadline::At(at(100))));
    assert!(refused(&|t| t.deadline = ReclaimDeadline::After(Seconds(0))));
    let long = Seconds(MAX_RECLAIM_SECONDS + 1);
    assert!(refused(&|t| t.deadline = ReclaimDeadline::After(long)));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(&|t| t.max_cost = Some(wrong)));
    }
}

#[test]
fn the_host_is_free_when_nothing_preemptible_holds_capacity() {
    let protected = StayReason::Protected { until: at(5) };
    assert_eq!(ReclaimState::of(1, [protected]), ReclaimState::Leaving);
    assert_eq!(ReclaimState::of(0, [protected]), ReclaimState::Blocked);
    let rest = [StayReason::Normal, StayReason::Kept];
    assert_eq!(ReclaimState::of(0, rest), ReclaimState::Free);
}
