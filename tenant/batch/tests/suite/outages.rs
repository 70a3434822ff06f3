//! Two minutes without the cloud's API, or without slurmctld.

use crate::run::Run;
use crate::sim::{Away, SETTINGS, TICK};
use ebbtide_batch::MemberId;
use proptest::prelude::*;
use serde_json::json;

/// Looks that an outage of two minutes costs.
const LOOKS: u32 = 240;
/// What an outage costs, seconds: itself, and another request for a server that was refused.
const RESERVE: i64 = 120 + 30;

/// What is taken during an outage: at which look, which server, and whether it had notice.
type Taken = (u32, usize, bool);

/// Something is away for two minutes.
#[derive(Debug, Clone)]
struct Outage {
    /// Looks before it.
    after: u32,
    away: Away,
    taken: Vec<Taken>,
    /// The service is killed meanwhile, and another one begins.
    restart: bool,
}

fn outage() -> impl Strategy<Value = Outage> {
    let away = prop_oneof![
        Just(Away::CloudRefuses),
        Just(Away::CloudHangs),
        Just(Away::Slurm)
    ];
    let taken = proptest::collection::vec((0..LOOKS, 0..4usize, any::<bool>()), 0..6);
    // Soon, or when the work is pressed for time.
    let after = prop_oneof![0..160u32, 0..900u32];
    let all = (after, away, taken, proptest::bool::weighted(0.2));
    all.prop_map(|(after, away, taken, restart)| Outage {
        after,
        away,
        taken,
        restart,
    })
}

/// A run whose margin covers so many outages.
fn run(outages: usize) -> Run {
    let margin = format!("margin_seconds = {}", 10 + RESERVE * outages as i64);
    let text = SETTINGS.replace("margin_seconds = 10", &margin);
    Run::with(&text)
}

fn pass(run: &mut Run, outage: &Outage) {
    (0..outage.after).for_each(|_| run.step(true));
    run.step_into(outage.away);
    for look in 0..LOOKS {
        let now = outage.taken.iter().filter(|(at, ..)| *at == look);
        now.for_each(|(_, at, notice)| run.sim.take(*at, *notice));
        run.step(true);
    }
    if outage.restart {
        run.restart();
    }
    run.sim.away = None;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn outages_of_two_minutes_break_no_promise_that_the_margin_covers(
        saves in any::<bool>(),
        count in 1..14usize,
        lengths in proptest::collection::vec(2..46i64, 14),
        slack in 0..300i64,
        full in any::<bool>(),
        outages in proptest::collection::vec(outage(), 1..=2),
    ) {
        let mut run = run(outages.len());
        run.sim.saves = saves;
        run.sim.full = full;
        // As without outages, and what the margin has in reserve for them.
        let (safe, rounds) = (40 * 12 / 10, (count as i64 - 1) / 2 + 1);
        let reserve = RESERVE * outages.len() as i64;
        let deadline = safe * rounds + safe + 8 + 13 + 20 * rounds + reserve + slack;
        let mut work = json!({"name": "bag", "dir": "/shared/bag", "command": "./render", "cpus": 2,
            "memory_mb": 1000, "count": count, "length": "40s", "deadline": deadline});
        if saves {
            work["checkpoint"] = json!({"command": "./save", "cost": "1s"});
        }
        let work = run.submit(work);
        let members = (0..count).map(|index| MemberId { stage: 0, index });
        for (member, seconds) in members.clone().zip(&lengths) {
            run.sim.lengths.insert((work, member), seconds * 1_000);
        }
        let begin = run.sim.now;
        for outage in &outages {
            pass(&mut run, outage);
        }
        run.until_over(work);
        prop_assert_eq!(run.state(work), "done");
        let book = &run.controller.book().works[&work];
        let took = book.last_end.unwrap() - begin;
        prop_assert!(took <= deadline * 1_000 + TICK, "{} of {} s", took / 1_000, deadline);
        for member in members {
            prop_assert_eq!(run.sim.ended.get(&(work, member)), Some(&1));
        }
        (0..200).for_each(|_| run.step(true));
        prop_assert_eq!(run.sim.servers(), 0);
    }
}
