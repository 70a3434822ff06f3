//! Cases of Nova's decisions and inputs of its benchmark: whatever is one, is decided, and by
//! columns as host by host.

use ebbtide_conformance::answer::answer;
use ebbtide_conformance::bench_input::BenchInput;
use ebbtide_conformance::case::Case;

/// More hosts than this tell nothing new.
const HOSTS: usize = 40;

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for line in text.lines().take(4) {
        let Ok((case, _)) = Case::from_line(line) else {
            continue;
        };
        if case.host_count() > HOSTS {
            continue;
        }
        let first = answer(&case);
        assert!(
            !first.contains_key("table"),
            "columns and hosts differ: {:?}",
            first.get("table")
        );
        // Nothing is left to chance but what is said to be.
        assert_eq!(format!("{:?}", answer(&case)), format!("{first:?}"));
    }
    if let Ok(input) = BenchInput::read(text.lines().take(1 + HOSTS)) {
        let cloud = input.cloud();
        for spec in input.requests.iter().take(4) {
            let _ = cloud.decide(spec, usize::MAX);
        }
    }
}
