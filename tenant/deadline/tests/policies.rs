//! The paper's rules, one by one, and what ours learns.

use crate::support::{POLICIES, job};
use ebbtide_deadline::{
    DeadlineError, DeadlineJob, Decider, Decision, History, HourPrices, JobCost, JobFacts,
    JobServer, JobTerms, MOST_SLICES, PolicyKind, Series, simulate,
};
use ebbtide_model::Money;

const HOUR: u64 = 3_600;
const MINUTE: u64 = 60;

/// 48 hours of work, a deadline after 60, a changeover of 12 minutes: the paper's job.
fn papers_job() -> DeadlineJob {
    job(48 * HOUR, 60 * HOUR, 12 * MINUTE, 10 * MINUTE)
}

fn decided(kind: PolicyKind, now: u64, done: u64, held: JobServer, there: bool) -> Decision {
    let mut decider = Decider::new(papers_job(), kind, &History::default()).unwrap();
    decider.decide(&JobFacts {
        now,
        done,
        held,
        spot_available: there,
    })
}

const ON_DEMAND: JobServer = JobServer::OnDemand { starting: 0 };
const SPOT: JobServer = JobServer::Spot { starting: 0 };

#[test]
fn greedy_waits_until_the_slack_is_less_than_two_changeovers() {
    let greedy = |now, there| decided(PolicyKind::Greedy, now, 0, JobServer::Nothing, there);
    let net = 12 * HOUR - 24 * MINUTE;
    assert_eq!(greedy(net, false), Decision::Wait);
    assert_eq!(greedy(net, true), Decision::Spot);
    assert_eq!(greedy(net + 1, false), Decision::OnDemand);
    assert_eq!(greedy(net + 1, true), Decision::OnDemand);
}

#[test]
fn greedy_never_leaves_an_on_demand_server() {
    let decision = decided(PolicyKind::Greedy, 0, 10 * HOUR, ON_DEMAND, true);
    assert_eq!(decision, Decision::OnDemand);
}

#[test]
fn uniform_progress_pays_when_an_idle_job_is_behind_the_line() {
    // After 10 hours the line is at 8.
    let idle = |done, there| {
        decided(
            PolicyKind::UniformProgress,
            10 * HOUR,
            done,
            JobServer::Nothing,
            there,
        )
    };
    assert_eq!(idle(8 * HOUR, false), Decision::Wait);
    assert_eq!(idle(8 * HOUR - 1, false), Decision::OnDemand);
    assert_eq!(idle(8 * HOUR - 1, true), Decision::Spot);
}

#[test]
fn uniform_progress_keeps_an_on_demand_server_until_the_line_of_two_changeovers_later() {
    let paid = |kind, done, there| decided(kind, 10 * HOUR, done, ON_DEMAND, there);
    // 0.8 × (10 h + 24 min).
    let line = 8 * HOUR + 1_152;
    for kind in [PolicyKind::UniformProgress, PolicyKind::UniformProgressKeep] {
        assert_eq!(paid(kind, line - 1, true), Decision::OnDemand);
        assert_eq!(paid(kind, line, true), Decision::Spot);
    }
    assert_eq!(
        paid(PolicyKind::UniformProgress, line, false),
        Decision::Wait
    );
    let keep = paid(PolicyKind::UniformProgressKeep, line, false);
    assert_eq!(keep, Decision::OnDemand);
}

#[test]
fn a_preemptible_server_is_kept_until_it_is_lost() {
    for kind in POLICIES {
        if kind != PolicyKind::OnDemand {
            let decision = decided(kind, 40 * HOUR, 30 * HOUR, SPOT, true);
            assert_eq!(decision, Decision::Spot, "{kind:?}");
        }
    }
}

#[test]
fn time_sliced_is_greedy_in_each_slice() {
    // Slices of 15 hours with 12 hours of work each.
    let kind = PolicyKind::TimeSliced { slices: 4 };
    let idle = |now, done| decided(kind, now, done, JobServer::Nothing, false);
    let net = 3 * HOUR - 24 * MINUTE;
    assert_eq!(idle(net, 0), Decision::Wait);
    assert_eq!(idle(net + 1, 0), Decision::OnDemand);
    // What the first slice did more the second need not do.
    assert_eq!(idle(15 * HOUR + net + HOUR, 13 * HOUR), Decision::Wait);
    // An on-demand server stays until the share of the slice is done.
    let paid = |done| decided(kind, 5 * HOUR, done, ON_DEMAND, false);
    assert_eq!(paid(12 * HOUR - 1), Decision::OnDemand);
    assert_eq!(paid(12 * HOUR), Decision::Wait);
}

#[test]
fn slices_are_at_least_one_and_not_too_many() {
    for slices in [0, MOST_SLICES + 1] {
        let kind = PolicyKind::TimeSliced { slices };
        let refused = Decider::new(papers_job(), kind, &History::default()).unwrap_err();
        assert!(matches!(refused, DeadlineError::Slices { .. }));
    }
}

fn cost(kind: PolicyKind, history: &History, market: &[bool]) -> JobCost {
    let mut decider = Decider::new(papers_job(), kind, history).unwrap();
    simulate(&mut decider, market, 10 * MINUTE).unwrap().cost
}

#[test]
fn a_market_with_servers_at_all_times_costs_the_preemptible_price() {
    let market = [true; 360];
    let spot = papers_job().terms().prices.spot;
    let least = JobCost::of(48 * HOUR + 12 * MINUTE, spot);
    for kind in POLICIES {
        if kind != PolicyKind::OnDemand {
            assert_eq!(cost(kind, &History::default(), &market), least, "{kind:?}");
        }
    }
}

#[test]
fn planned_has_learnt_that_a_short_life_is_not_worth_a_changeover() {
    // Ten minutes of servers every hour, shorter than a changeover: each start is wasted.
    let flicker: Vec<bool> = (0..720).map(|n| n % 6 == 0).collect();
    let series = Series::new("flicker", 10 * MINUTE, flicker).unwrap();
    let history = series.history(360, u64::MAX);
    let market = series.window(360, 60 * HOUR).unwrap();
    let on_demand = papers_job().on_demand_cost();
    assert_eq!(cost(PolicyKind::Planned, &history, market), on_demand);
    assert!(cost(PolicyKind::Greedy, &history, market) > on_demand);
    // Without the history it tries, and still pays less than greedy.
    let fresh = cost(PolicyKind::Planned, &History::default(), market);
    assert!(fresh < cost(PolicyKind::Greedy, &history, market));
}

#[test]
fn planned_waits_out_a_gap_of_a_market_that_has_short_gaps() {
    // Five hours with servers, one without.
    let market: Vec<bool> = (0..1_080).map(|n| n % 36 < 30).collect();
    let series = Series::new("short gaps", 10 * MINUTE, market).unwrap();
    let history = series.history(720, u64::MAX);
    let window = series.window(720, 60 * HOUR).unwrap();
    let spot = papers_job().terms().prices.spot;
    // Ten starts: no on-demand second.
    let least = JobCost::of(48 * HOUR + 10 * 12 * MINUTE, spot);
    assert_eq!(cost(PolicyKind::Planned, &history, window), least);
}

#[test]
fn terms_that_make_no_sense_are_refused_with_a_code() {
    let terms = *papers_job().terms();
    let prices = |spot, on_demand| HourPrices {
        spot: Money::from_micros(spot),
        on_demand: Money::from_micros(on_demand),
    };
    let wrong = [
        (JobTerms { work: 0, ..terms }, "EB-DEADLINE-001"),
        (JobTerms { poll: 0, ..terms }, "EB-DEADLINE-001"),
        (
            JobTerms {
                deadline: u64::MAX,
                ..terms
            },
            "EB-DEADLINE-001",
        ),
        (
            JobTerms {
                prices: prices(2, 1),
                ..terms
            },
            "EB-DEADLINE-001",
        ),
        (
            JobTerms {
                prices: prices(0, 0),
                ..terms
            },
            "EB-DEADLINE-001",
        ),
        (
            JobTerms {
                deadline: 48 * HOUR + 719,
                ..terms
            },
            "EB-DEADLINE-002",
        ),
    ];
    for (terms, code) in wrong {
        let refused = DeadlineJob::new(terms).unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert!(refused.is_setting());
    }
}
