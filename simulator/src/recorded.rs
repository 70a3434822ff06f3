//! Recorded placements of another scheduler, for comparison with Ebbtide's.
//!
//! The format is that of the VMAgent recordings: a CSV with the columns `event`, `vm` and `action`,
//! one line for each event of the trace, in its order. The action of a create is a host, written as
//! `server * 2 + numa`: each NUMA node of a server is a host of its own.

use crate::{EventKind, SimError, Trace};
use serde::Serialize;
use std::path::Path;

/// How the recording's hosts are named here: `{server}` and `{numa}` stand for the parts of the
/// action, `{host}` for the action itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern(String);

impl HostPattern {
    /// A pattern such as `s{server}n{numa}` or `host-{host}`.
    ///
    /// # Errors
    /// [`SimError::Option`] if it would give two hosts one name.
    pub fn new(pattern: &str) -> Result<Self, SimError> {
        let split = pattern.contains("{server}") && pattern.contains("{numa}");
        if split || pattern.contains("{host}") {
            Ok(Self(pattern.to_owned()))
        } else {
            Err(SimError::Option(format!(
                "host pattern {pattern:?} gives several hosts one name: use {{server}} and {{numa}}, or {{host}}"
            )))
        }
    }

    #[must_use]
    pub fn host(&self, action: u32) -> String {
        self.0
            .replace("{server}", &(action / 2).to_string())
            .replace("{numa}", &(action % 2).to_string())
            .replace("{host}", &action.to_string())
    }
}

/// The recorded hosts of the creates of a trace, in their order. A recording may end before the
/// trace does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedPlacements(Vec<String>);

impl RecordedPlacements {
    /// Reads a recording (plain, gzip or zstd) and checks that it belongs to the trace.
    ///
    /// # Errors
    /// [`SimError`] about the file or a line; [`SimError::OtherTrace`].
    pub fn read(path: &Path, pattern: &HostPattern, trace: &Trace) -> Result<Self, SimError> {
        Self::parse(&ebbtide_files::read(path)?, path, pattern, trace)
    }

    /// Reads from memory; `path` is for messages only.
    ///
    /// # Errors
    /// As [`RecordedPlacements::read`].
    pub fn parse(
        bytes: &[u8],
        path: &Path,
        pattern: &HostPattern,
        trace: &Trace,
    ) -> Result<Self, SimError> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(bytes);
        let line_error = |line: u64, problem: String| SimError::Line {
            path: path.to_path_buf(),
            line,
            problem,
        };
        let of_csv = |error: csv::Error| {
            line_error(
                error.position().map_or(1, csv::Position::line),
                error.to_string(),
            )
        };
        let headers = reader.headers().map_err(of_csv)?.clone();
        let place = |name: &str| {
            headers
                .iter()
                .position(|header| header == name)
                .ok_or_else(|| SimError::Header {
                    path: path.to_path_buf(),
                    problem: format!(
                        "column {name} is missing; a recording has event, vm and action"
                    ),
                })
        };
        let (event_at, vm_at, action_at) = (place("event")?, place("vm")?, place("action")?);
        let mut creates = trace
            .events
            .iter()
            .filter(|event| event.kind == EventKind::Create);
        let mut hosts = Vec::new();
        for record in reader.records() {
            let record = record.map_err(of_csv)?;
            let line = record.position().map_or(0, csv::Position::line);
            let field = |place: usize| record.get(place).unwrap_or("");
            if field(event_at) != "create" {
                continue;
            }
            // The trace may have been cut by --limit.
            let Some(create) = creates.next() else { break };
            if create.vm != field(vm_at) {
                return Err(SimError::OtherTrace(format!(
                    "line {line} of {} creates vm {:?} where line {} of the trace creates {:?}",
                    path.display(),
                    ebbtide_model::names::shorten(field(vm_at)),
                    create.line,
                    create.vm
                )));
            }
            let action: u32 = field(action_at).parse().map_err(|_| {
                let action = ebbtide_model::names::shorten(field(action_at));
                line_error(
                    line,
                    format!("action {action:?} is not a whole number, not negative"),
                )
            })?;
            hosts.push(pattern.host(action));
        }
        Ok(Self(hosts))
    }

    /// How many creates were recorded.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if none was.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn comparison(&self) -> Comparison {
        Comparison {
            expected: self.0.len() as u64,
            ..Comparison::default()
        }
    }

    /// Compares the place of the create number `index`, counted from 0 over the creates of the
    /// trace. `None`: it was refused.
    pub fn compare(
        &self,
        comparison: &mut Comparison,
        index: usize,
        line: u64,
        vm: &str,
        host: Option<&str>,
    ) {
        let Some(expected) = self.0.get(index) else {
            return;
        };
        comparison.compared += 1;
        if host == Some(expected.as_str()) {
            comparison.equal += 1;
        } else if comparison
            .first_difference
            .as_ref()
            .is_none_or(|first| line < first.line)
        {
            comparison.first_difference = Some(PlacementDifference {
                line,
                vm: vm.to_owned(),
                expected: expected.clone(),
                placed: host.map(str::to_owned),
            });
        }
    }
}

/// How the comparison went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Creates that were recorded.
    pub expected: u64,
    /// Creates that have been compared.
    pub compared: u64,
    /// Creates that went to the recorded host.
    pub equal: u64,
    /// The first that did not.
    pub first_difference: Option<PlacementDifference>,
}

impl Comparison {
    /// True if every recorded create was replayed and went where it was recorded.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.equal == self.expected && self.compared == self.expected
    }
}

impl std::fmt::Display for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} placements equal", self.equal, self.expected)?;
        if let Some(first) = &self.first_difference {
            let placed = first.placed.as_deref().unwrap_or("nowhere");
            write!(
                f,
                "; first difference at line {} of the trace: vm {} was placed on {placed}, recorded is {}",
                first.line, first.vm, first.expected
            )?;
        } else if self.compared < self.expected {
            write!(f, "; {} were not replayed", self.expected - self.compared)?;
        }
        Ok(())
    }
}

/// A create that went elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacementDifference {
    /// Its line in the trace.
    pub line: u64,
    /// The VM, as the trace names it.
    pub vm: String,
    /// Where it was recorded.
    pub expected: String,
    /// Where it went; nothing if it was refused.
    pub placed: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadOptions;

    fn trace() -> Trace {
        let text = "event,vm,cpu,mem_gb,time_s\ncreate,a,1,1,0\ndelete,a,1,1,1\ncreate,b,1,1,2\n";
        Trace::parse(text.as_bytes(), Path::new("t"), ReadOptions::default()).unwrap()
    }

    fn parse(text: &str) -> Result<RecordedPlacements, SimError> {
        let pattern = HostPattern::new("s{server}n{numa}").unwrap();
        RecordedPlacements::parse(text.as_bytes(), Path::new("r"), &pattern, &trace())
    }

    #[test]
    fn an_action_is_a_server_and_a_numa_node() {
        let pattern = HostPattern::new("s{server}n{numa}").unwrap();
        assert_eq!(pattern.host(9), "s4n1");
        assert_eq!(HostPattern::new("h{host}").unwrap().host(9), "h9");
        assert!(HostPattern::new("host").is_err());
        assert!(HostPattern::new("s{server}").is_err());
    }

    #[test]
    fn the_first_difference_is_named() {
        let recorded =
            parse("seq,event,vm,action\n0,create,a,0\n1,delete,a,0\n2,create,b,3\n").unwrap();
        let mut comparison = recorded.comparison();
        recorded.compare(&mut comparison, 0, 2, "a", Some("s0n0"));
        assert_eq!(
            comparison.to_string(),
            "1 of 2 placements equal; 1 were not replayed"
        );
        recorded.compare(&mut comparison, 1, 4, "b", Some("s0n0"));
        recorded.compare(&mut comparison, 2, 9, "beyond", Some("s0n0"));
        assert!(!comparison.agrees());
        assert_eq!(
            comparison.to_string(),
            "1 of 2 placements equal; first difference at line 4 of the trace: vm b was placed on s0n0, recorded is s1n1"
        );
    }

    #[test]
    fn a_recording_of_another_trace_is_refused() {
        let error = parse("event,vm,action\ncreate,z,0\n").unwrap_err();
        assert_eq!(error.code(), "EB-SIM-005");
        let error = parse("event,vm,action\ncreate,a,-1\n").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        assert_eq!(parse("event,vm\n").unwrap_err().code(), "EB-SIM-002");
    }
}
