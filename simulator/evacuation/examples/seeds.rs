//! Runs seeds of one world, for developers of the state machines:
//! `cargo run -p ebbtide-evacuation-simulator --example seeds -- WORLD FROM COUNT STEPS [RULE]`.
//! The command `ebbtide-lab simulate evacuation` does more, and takes longer to build.
#![allow(clippy::print_stdout, reason = "an example prints")]

use ebbtide_evacuation_simulator::{EvacuationCounts, FaultCounts, Simulator, WorldKind};

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [world, from, count, steps, rest @ ..] = words.as_slice() else {
        return Err("say WORLD FROM COUNT STEPS [RULE]".to_owned());
    };
    let number = |word: &String| word.parse::<u64>().map_err(|e| format!("{word}: {e}"));
    let world: WorldKind = world.parse()?;
    let (from, count) = (number(from)?, number(count)?);
    let steps = usize::try_from(number(steps)?).map_err(|e| e.to_string())?;
    let mut simulator = Simulator::new().ok_or("the engine refuses its defaults")?;
    if let Some(rule) = rest.first() {
        simulator = simulator.breaking(rule.parse()?);
    }
    let (mut ends, mut faults, mut failed) =
        (EvacuationCounts::default(), FaultCounts::default(), 0);
    for seed in from..from + count {
        let outcome = simulator.run(world, seed, steps);
        ends.merge(outcome.ends);
        faults.merge(&outcome.faults);
        if (seed + 1 - from) % 5000 == 0 {
            println!(
                "{} seeds: {ends:?}, {} faults, {failed} broken",
                seed + 1 - from,
                faults.total()
            );
        }
        let Some(violation) = outcome.violation else {
            continue;
        };
        println!("seed {seed}, step {}: {violation}", violation.step);
        failed += 1;
        if failed == 1
            && let Some(shrunk) = simulator.shrink(world, seed, steps)
        {
            println!("{}", shrunk.outcome.event_log.join("\n"));
            println!("{:?}", shrunk.outcome.violation);
            println!("{} {seed} {steps} {}", world.as_str(), shrunk.places);
        }
    }
    for (fault, count) in faults.iter() {
        println!("{count:>8} {}", fault.as_str());
    }
    println!("{ends:?}; {failed} seeds break a promise");
    Ok(())
}
