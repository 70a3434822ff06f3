//! What has to hold for every price, bid and job.

use ebbtide_checkpointing::{
    AccReading, Adapt, AdaptKnowledge, Availability, BidLifetimes, CheckpointTerms,
    CheckpointedJob, EventKind, HOUR_SECONDS, JobEnd, JobResult, Market, Period, PriceHistory,
    SchemeKind, SchemeView, Starts, TerminatedBy, bill, compare, expected_execution_time, run,
    scheme,
};
use ebbtide_model::Money;
use proptest::prelude::*;

/// A price of a few days that goes up and down in steps of a cent around the bid of ten cents.
fn prices() -> impl Strategy<Value = PriceHistory> {
    prop::collection::vec((60_i64..20_000, 1_u64..20), 2..120).prop_map(|steps| {
        let mut time = 0;
        let mut changes = Vec::new();
        for (span, cents) in steps {
            changes.push((time, Money::from_micros(cents * 10_000)));
            time += span;
        }
        PriceHistory::new(&changes, time).unwrap()
    })
}

fn bid() -> impl Strategy<Value = Money> {
    (1_u64..20).prop_map(|cents| Money::from_micros(cents * 10_000))
}

fn terms() -> impl Strategy<Value = CheckpointTerms> {
    (
        0_i64..900,
        0_i64..900,
        0_i64..300,
        any::<bool>(),
        60_i64..4000,
    )
        .prop_map(
            |(checkpoint, restart, terminate, naive, every)| CheckpointTerms {
                checkpoint_seconds: checkpoint,
                restart_seconds: restart,
                terminate_seconds: terminate,
                reading: if naive {
                    AccReading::Naive
                } else {
                    AccReading::Strict
                },
                adapt: Adapt {
                    every_seconds: every,
                    knowledge: AdaptKnowledge::Whole,
                },
                ..CheckpointTerms::default()
            },
        )
}

fn job() -> impl Strategy<Value = CheckpointedJob> {
    (1_i64..80_000, 0_i64..100_000).prop_map(|(work_seconds, start)| CheckpointedJob {
        work_seconds,
        start,
    })
}

fn play(
    history: &PriceHistory,
    bid: Money,
    kind: SchemeKind,
    terms: &CheckpointTerms,
    job: CheckpointedJob,
) -> JobResult {
    let market = Market::new(history, bid);
    let lives = BidLifetimes::until(market.availability(), history.end());
    run(&market, scheme(kind), terms, &lives, job)
}

fn done(outcome: &JobResult) -> Option<i64> {
    match outcome.ending {
        JobEnd::Done(at) => Some(at),
        _ => None,
    }
}

/// The same past up to `time`, then something else.
fn another_future(history: &PriceHistory, time: i64, future: &[u64]) -> PriceHistory {
    let mut changes: Vec<(i64, Money)> = history.changes().filter(|(at, _)| *at <= time).collect();
    let mut at = time;
    for cents in future {
        at += 1 + 700 * i64::try_from(*cents).unwrap();
        changes.push((at, Money::from_micros(cents * 10_000)));
    }
    PriceHistory::new(&changes, history.end().max(at + 1)).unwrap()
}

/// Half-hours cheap and dear for a day, then half a day cheap, then what `future` says, until the
/// sixth day ends.
fn two_days(future: impl Fn(i64) -> u64) -> PriceHistory {
    let mut changes: Vec<(i64, Money)> = Vec::new();
    let mut add = |at: i64, micros: u64| changes.push((at, Money::from_micros(micros)));
    (0..48).for_each(|half| add(half * 1800, if half % 2 == 0 { 100_000 } else { 300_000 }));
    add(86_400, 100_001);
    (0..300).for_each(|third| add(129_600 + third * 1200, future(third)));
    PriceHistory::new(&changes, 6 * 86_400).unwrap()
}

#[test]
fn what_adapt_has_learned_at_a_start_is_the_past_of_that_start() {
    let results = [
        two_days(|third| if third % 2 == 0 { 100_000 } else { 300_000 }),
        two_days(|_| 100_000),
    ]
    .map(|history| {
        // Two starts, one a day; both jobs end before the futures part.
        let starts = Starts {
            every_seconds: 86_400,
            tail_seconds: 5 * 86_400 - 1,
        };
        let terms = CheckpointTerms {
            adapt: Adapt {
                every_seconds: 600,
                knowledge: AdaptKnowledge::Past,
            },
            ..CheckpointTerms::default()
        };
        let bid = Money::from_micros(200_000);
        let kinds = [SchemeKind::Adapt];
        let row = compare(&history, bid, &kinds, &terms, 5 * HOUR_SECONDS, starts).unwrap();
        assert_eq!((row.starts, row.schemes[0].finished), (2, 2));
        assert!(row.schemes[0].checkpoints > 0.0);
        row.schemes[0].clone()
    });
    assert_eq!(results[0], results[1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_second_of_a_job_is_accounted_for_once(
        history in prices(), bid in bid(), terms in terms(), job in job(),
    ) {
        for kind in SchemeKind::ALL {
            let outcome = play(&history, bid, kind, &terms, job);
            if let Some(end) = done(&outcome) {
                let sum = outcome.waiting_seconds + outcome.work_seconds + outcome.lost_seconds
                    + outcome.checkpoint_seconds + outcome.restart_seconds;
                prop_assert_eq!(sum, end - job.start, "{} {:?}", kind, outcome);
                prop_assert_eq!(outcome.work_seconds, job.work_seconds);
            }
        }
    }

    #[test]
    fn no_scheme_that_dies_with_the_price_finishes_before_opt(
        history in prices(), bid in bid(), terms in terms(), job in job(),
    ) {
        let best = done(&play(&history, bid, SchemeKind::Opt, &terms, job));
        for kind in [SchemeKind::None, SchemeKind::Hour, SchemeKind::Edge, SchemeKind::Adapt] {
            if let Some(end) = done(&play(&history, bid, kind, &terms, job)) {
                prop_assert!(best.is_some_and(|best| best <= end), "{} at {}, OPT {:?}", kind, end, best);
            }
        }
    }

    #[test]
    fn opt_loses_no_work_where_a_checkpoint_fits(
        history in prices(), bid in bid(), job in job(), checkpoint in 0_i64..300,
    ) {
        let terms = CheckpointTerms { checkpoint_seconds: checkpoint, restart_seconds: 0, ..CheckpointTerms::default() };
        let outcome = play(&history, bid, SchemeKind::Opt, &terms, job);
        // Only a period shorter than a checkpoint loses its work.
        prop_assert!(done(&outcome).is_none() || outcome.lost_seconds <= i64::from(outcome.kills) * checkpoint);
    }

    #[test]
    fn what_was_not_lost_was_saved_and_what_was_saved_is_never_done_again(
        history in prices(), bid in bid(), terms in terms(), job in job(),
    ) {
        // Without checkpoints everything before the last instance is lost; with them never more
        // than that.
        for kind in SchemeKind::ALL {
            let outcome = play(&history, bid, kind, &terms, job);
            if outcome.kills == 0 && terms.reading == AccReading::Strict {
                prop_assert!(done(&outcome).is_none() || outcome.lost_seconds == 0, "{} {:?}", kind, outcome);
            }
            if kind == SchemeKind::None {
                prop_assert_eq!(outcome.checkpoints, 0);
                prop_assert_eq!(outcome.checkpoint_seconds, 0);
            }
        }
    }

    #[test]
    fn hours_charged_are_the_begun_hours_at_most_and_the_complete_ones_at_least(
        history in prices(), launch in 0_i64..50_000, span in 0_i64..50_000,
    ) {
        let user = bill(&history, launch, launch + span, TerminatedBy::User);
        let provider = bill(&history, launch, launch + span, TerminatedBy::Provider);
        let complete = usize::try_from(span / HOUR_SECONDS).unwrap();
        let begun = usize::try_from((span + HOUR_SECONDS - 1) / HOUR_SECONDS).unwrap();
        prop_assert_eq!(provider.hours.len(), complete);
        prop_assert_eq!(user.hours.len(), begun);
        prop_assert!(provider.total <= user.total);
        let (low, high) = history.extremes();
        let hours = user.hours.len() as u64;
        prop_assert!((low.micros() * hours..=high.micros() * hours).contains(&user.total.micros()));
    }

    #[test]
    fn the_bill_of_a_job_lies_within_its_hours_times_the_bid(
        history in prices(), bid in bid(), terms in terms(), job in job(),
    ) {
        for kind in SchemeKind::ALL {
            let outcome = play(&history, bid, kind, &terms, job);
            let (low, _) = history.extremes();
            prop_assert!(outcome.cost.micros() >= low.micros() * outcome.hours);
            if kind != SchemeKind::Acc {
                prop_assert!(outcome.cost.micros() <= bid.micros() * outcome.hours, "{}", kind);
            }
            let running = outcome.work_seconds + outcome.lost_seconds + outcome.checkpoint_seconds
                + outcome.restart_seconds;
            if done(&outcome).is_some() {
                // Each instance charges one begun hour more than it ran at most.
                let most = running / HOUR_SECONDS + i64::from(outcome.launches);
                prop_assert!(outcome.hours <= u64::try_from(most).unwrap(), "{} {:?}", kind, outcome);
            }
        }
    }

    #[test]
    fn acc_that_always_gives_back_never_pays_more_than_its_bid(
        history in prices(), bid in bid(), terms in terms(), job in job(),
    ) {
        let terms = CheckpointTerms { reading: AccReading::Naive, terminate_seconds: 0, ..terms };
        let outcome = play(&history, bid, SchemeKind::Acc, &terms, job);
        prop_assert!(outcome.cost.micros() <= bid.micros() * outcome.hours);
        prop_assert_eq!(outcome.kills, 0);
    }

    #[test]
    fn acc_read_strictly_loses_no_work(
        history in prices(), bid in bid(), terms in terms(), job in job(),
    ) {
        let terms = CheckpointTerms { reading: AccReading::Strict, ..terms };
        let outcome = play(&history, bid, SchemeKind::Acc, &terms, job);
        if done(&outcome).is_some() {
            prop_assert_eq!(outcome.lost_seconds, 0);
        }
    }

    #[test]
    fn acc_with_a_ceiling_dies_above_it_and_only_there(
        history in prices(), bid in bid(), extra in 0_u64..5, job in job(),
    ) {
        let ceiling = Money::from_micros(bid.micros() + extra * 10_000);
        let terms = CheckpointTerms { ceiling: Some(ceiling), ..CheckpointTerms::default() };
        let outcome = play(&history, bid, SchemeKind::Acc, &terms, job);
        prop_assert!(outcome.cost.micros() <= ceiling.micros() * outcome.hours);
        let (_, high) = history.extremes();
        prop_assert!(high > ceiling || outcome.kills == 0);
    }

    #[test]
    fn without_restart_cost_a_higher_bid_never_finishes_later_with_opt(
        history in prices(), bid in bid(), more in 0_u64..10, job in job(), checkpoint in 0_i64..900,
    ) {
        let terms = CheckpointTerms { checkpoint_seconds: checkpoint, restart_seconds: 0, ..CheckpointTerms::default() };
        let higher = Money::from_micros(bid.micros() + more * 10_000);
        if let Some(end) = done(&play(&history, bid, SchemeKind::Opt, &terms, job)) {
            let sooner = done(&play(&history, higher, SchemeKind::Opt, &terms, job));
            prop_assert!(sooner.is_some_and(|sooner| sooner <= end));
        }
    }

    #[test]
    fn no_scheme_but_opt_knows_the_future(
        history in prices(), bid in bid(), terms in terms(), job in job(),
        when in 0_i64..300_000, future in prop::collection::vec(1_u64..20, 1..10),
    ) {
        let when = when.min(history.end());
        let other = another_future(&history, when, &future);
        // With what is known at `when` all along, and learning from nothing on.
        let known = BidLifetimes::until(&Availability::new(&history, bid), when);
        let learning = CheckpointTerms { adapt: Adapt { knowledge: AdaptKnowledge::Past, ..terms.adapt }, ..terms };
        let ways = [(terms, known), (learning, BidLifetimes::default())];
        let kinds = SchemeKind::ALL.into_iter().filter(|kind| *kind != SchemeKind::Opt);
        for (kind, (terms, lives)) in kinds.flat_map(|kind| ways.iter().map(move |way| (kind, way))) {
            let mut told: Vec<Vec<_>> = Vec::new();
            for history in [&history, &other] {
                let market = Market::new(history, bid);
                let outcome = run(&market, scheme(kind), terms, lives, job);
                told.push(outcome.events.into_iter().filter(|e| e.at < when).collect());
            }
            prop_assert_eq!(&told[0], &told[1], "{}", kind);
        }
    }

    #[test]
    fn the_same_happens_a_year_later(
        history in prices(), bid in bid(), terms in terms(), job in job(), later in 0_i64..40_000_000,
    ) {
        let changes: Vec<(i64, Money)> = history.changes().map(|(at, price)| (at + later, price)).collect();
        let shifted = PriceHistory::new(&changes, history.end() + later).unwrap();
        for kind in SchemeKind::ALL {
            let now = play(&history, bid, kind, &terms, job);
            let then = play(&shifted, bid, kind, &terms, CheckpointedJob { start: job.start + later, ..job });
            prop_assert_eq!(done(&now).map(|at| at + later), done(&then));
            prop_assert_eq!((now.cost, now.hours, now.checkpoints), (then.cost, then.hours, then.checkpoints));
        }
    }

    #[test]
    fn availability_is_exactly_where_the_price_is_not_above_the_bid(
        history in prices(), bid in bid(), at in 0_i64..300_000,
    ) {
        let at = at.min(history.end() - 1);
        let availability = Availability::new(&history, bid);
        let inside = availability.from(at).is_some_and(|period| period.from <= at);
        prop_assert_eq!(inside, history.price_at(at) <= bid);
        prop_assert!((0.0..=1.0).contains(&availability.share()));
        for pair in availability.periods().windows(2) {
            prop_assert!(pair[0].until.unwrap() < pair[1].from, "periods that touch are one");
        }
    }

    #[test]
    fn the_expected_execution_time_is_the_mean_of_what_happens(
        lives in prop::collection::vec(600_i64..40_000, 1..30), work in 600_i64..40_000, restart in 0_i64..900,
    ) {
        let mut sample = BidLifetimes::default();
        lives.iter().for_each(|life| sample.add(*life));
        let exact = expected_execution_time(work, restart, &sample, 1);
        // By hand: a life of at least the work succeeds; the mean number of failures before is
        // (1-p)/p.
        let (long, short): (Vec<i64>, Vec<i64>) = lives.iter().partition(|life| **life >= work);
        match exact {
            None => prop_assert!(long.is_empty()),
            Some(seconds) => {
                let lost: i64 = short.iter().map(|life| life + restart).sum();
                let wanted = work as f64 + lost as f64 / long.len() as f64;
                prop_assert!((seconds - wanted).abs() < 1e-6 * wanted, "{seconds} against {wanted}");
            }
        }
        // Steps of a minute round each failure down to a whole minute.
        if let (Some(fine), Some(coarse)) = (exact, expected_execution_time(work / 60 * 60, restart, &sample, 60)) {
            prop_assert!(coarse <= fine + 60.0);
        }
    }

    #[test]
    fn hour_never_loses_more_than_an_hour_of_work_to_one_interruption(
        history in prices(), bid in bid(), terms in terms(), job in job(),
    ) {
        let outcome = play(&history, bid, SchemeKind::Hour, &terms, job);
        prop_assert!(outcome.lost_seconds <= i64::from(outcome.launches) * HOUR_SECONDS);
    }

    #[test]
    fn adapt_saves_exactly_where_its_expected_recovery_is_shorter(
        lives in prop::collection::vec(600_i64..40_000, 1..30),
        before in 0_i64..30_000, every in 60_i64..8_000, unsaved in 0_i64..8_000,
        checkpoint in 1_i64..900, restart in 0_i64..900,
    ) {
        let mut sample = BidLifetimes::default();
        lives.iter().for_each(|life| sample.add(*life));
        let terms = CheckpointTerms {
            checkpoint_seconds: checkpoint,
            restart_seconds: restart,
            adapt: Adapt { every_seconds: every, ..Adapt::default() },
            ..CheckpointTerms::default()
        };
        let history = PriceHistory::new(&[(0, Money::from_micros(1))], i64::MAX / 4).unwrap();
        // One decision is asked for: the job ends just after it.
        let decision = before + every;
        let seen = SchemeView {
            history: &history,
            bid: Money::from_micros(1),
            period: Period { from: 0, until: None },
            lives: &sample,
            terms: &terms,
            launch: before,
            now: before,
            unsaved,
            left: every + 1,
            checkpoint: None,
        };
        let saves = scheme(SchemeKind::Adapt).next(&seen).is_some();
        // The two expectations of the description, term by term.
        let older: Vec<i64> = lives.iter().copied().filter(|life| *life > decision).collect();
        prop_assume!(!older.is_empty());
        let (p, span) = (unsaved + every, every.max(checkpoint));
        let (mut without, mut with) = (0, checkpoint * older.len() as i64);
        for left in older.iter().map(|life| life - decision).filter(|left| *left <= span) {
            without += p + left + restart;
            with += if left < checkpoint { p + left + restart } else { left - checkpoint + restart };
        }
        // Where both are equal either is right.
        prop_assume!(with != without);
        prop_assert_eq!(saves, with < without, "with {} without {}", with, without);
    }

    #[test]
    fn adapt_that_knows_of_no_failure_takes_no_checkpoint_before_the_first(
        history in prices(), bid in bid(), terms in terms(), job in job(),
    ) {
        let adapt = Adapt { knowledge: AdaptKnowledge::Past, ..terms.adapt };
        let terms = CheckpointTerms { adapt, ..terms };
        let market = Market::new(&history, bid);
        let outcome = run(&market, scheme(SchemeKind::Adapt), &terms, &BidLifetimes::default(), job);
        let first = market.availability().from(job.start).and_then(|period| period.until);
        let saved = outcome.events.iter().find(|event| event.kind == EventKind::Checkpoint);
        if let Some(saved) = saved {
            prop_assert!(first.is_some_and(|first| first <= saved.at));
        }
    }

    #[test]
    fn the_failure_density_sums_to_one(
        lives in prop::collection::vec(1_i64..40_000, 1..30),
        age in 0_i64..50_000, from in 1_i64..1000, span in 0_i64..5000,
    ) {
        let mut sample = BidLifetimes::default();
        lives.iter().for_each(|life| sample.add(*life));
        let sum: f64 = sample.density(60).take(1 + 40_000 / 60).sum();
        prop_assert!((sum - 1.0).abs() < 1e-9);
        let chance = sample.chance_within(age, from, from + span);
        prop_assert!((0.0..=1.0).contains(&chance));
    }
}
