//! The targets in every run of the tests: their seeds, what was found once, changed seeds, and
//! inputs that are as long as they can be. libFuzzer finds more, with more time; this keeps what it
//! found from coming back, and the targets from rotting.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "clippy sees helpers beside the tests as no tests; how long a parser takes is what is asked"
)]

use ebbtide_fuzz::{FuzzTarget, TARGETS, mutate};
use rand::SeedableRng;
use rand_pcg::Pcg64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A parser of this many bytes that needs longer is not linear, also unoptimised on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

fn here(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(part)
}

/// The files of a folder, in order of their names; none if it is not there.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

fn give(target: &FuzzTarget, input: &[u8]) {
    let begun = Instant::now();
    let done = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let shown = || {
        let file = std::env::temp_dir().join(format!(
            "ebbtide-fuzz-{}-{}",
            target.name,
            std::process::id()
        ));
        std::fs::write(&file, input).unwrap();
        file.display().to_string()
    };
    assert!(
        done.is_ok(),
        "{}: a finding; the input is in {}",
        target.name,
        shown()
    );
    let took = begun.elapsed();
    assert!(
        took < LONGEST,
        "{}: {took:?} for {} bytes; they are in {}",
        target.name,
        input.len(),
        shown()
    );
}

fn lives(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = files(&here("seeds").join(name));
    assert!(!seeds.is_empty(), "{name} has no seeds");
    for input in seeds.iter().chain(&files(&here("regressions").join(name))) {
        give(target, input);
    }
    give(target, b"");
    let mut random = Pcg64::seed_from_u64(target.mutations as u64);
    for n in 0..target.mutations {
        let (seed, other) = (
            &seeds[n % seeds.len()],
            &seeds[(n / seeds.len()) % seeds.len()],
        );
        give(target, &mutate::mutate(&mut random, seed, other));
    }
    for input in mutate::long_inputs() {
        give(target, &input);
        // Where the first bytes choose, something else is chosen, too.
        for choice in [0, 1, 2, 3, 5, 7, 9] {
            give(target, &[&[choice, 0], input.as_slice()].concat());
        }
    }
}

macro_rules! each_target_lives {
    ($($name:ident)+) => {
        $(#[test] fn $name() { lives(stringify!($name)); })+

        #[test]
        fn every_target_is_tested_has_a_program_and_is_told_of() {
            let tested = [$(stringify!($name)),+];
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(tested.as_slice(), names);
            let read = |file: &str| std::fs::read_to_string(here(file)).unwrap();
            let (readme, manifest) = (read("README.md"), read("libfuzzer/Cargo.toml"));
            for target in TARGETS {
                let (name, reads) = (target.name, target.reads);
                assert!(readme.contains(&format!("| `{name}` | {reads} |")), "README.md: {name}");
                assert!(manifest.contains(&format!("name = \"{name}\"")), "libfuzzer/Cargo.toml: {name}");
                let program = read(&format!("libfuzzer/fuzz_targets/{name}.rs"));
                assert!(program.contains(&format!("\"{name}\"")), "{name}: another target");
            }
            for folder in ["seeds", "regressions"] {
                for entry in std::fs::read_dir(here(folder)).unwrap() {
                    let name = entry.unwrap().file_name().into_string().unwrap();
                    assert!(names.contains(&name.as_str()), "{folder}/{name} is of no target");
                }
            }
        }
    };
}

each_target_lives! {
    agent_config availability bag batch bus_message flavor grpc_message hypervisor job_trace journal lifetimes metadata_request nova_case nova_conf nova_objects
    nova_rows openstack_answer oslo_messaging placement_answer plugin_answer prices records region_call region_record rest_body
    run_record scheduler_config slurm small_texts tokens trace urls
}
