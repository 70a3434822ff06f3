//! Traces of requests and recorded placements.

use ebbtide_simulator::{EventKind, HostPattern, ReadOptions, RecordedPlacements, Trace};
use std::collections::HashSet;
use std::path::Path;

pub(super) fn run(bytes: &[u8]) {
    let path = Path::new("trace.csv");
    for lenient in [false, true] {
        let options = ReadOptions {
            limit: Some(1_000),
            lenient,
        };
        let Ok(trace) = Trace::parse(bytes, path, options) else {
            continue;
        };
        check(&trace, lenient);
        if let Ok(pattern) = HostPattern::new("node-{host}") {
            let creates = trace.events.iter().filter(|e| e.kind == EventKind::Create);
            let creates = creates.count();
            if let Ok(found) = RecordedPlacements::parse(bytes, path, &pattern, &trace) {
                assert!(found.len() <= creates);
            }
        }
    }
}

/// Checks that time never goes back, and that only existing VMs are deleted.
fn check(trace: &Trace, lenient: bool) {
    assert!(trace.events.len() <= 1_000);
    assert!(lenient || trace.irregularities.total() == 0);
    let (mut clock, mut alive) = (0.0, HashSet::new());
    for event in &trace.events {
        assert!(event.at >= clock && event.at.is_finite(), "at {}", event.at);
        clock = event.at;
        match event.kind {
            EventKind::Create => assert!(alive.insert(event.vm.as_str())),
            EventKind::Delete => assert!(alive.remove(event.vm.as_str())),
        }
        assert!(event.shape.vcpus > 0 || event.shape.ram_mb > 0);
    }
}
