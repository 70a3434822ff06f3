//! VM request traces: creates and deletes in order of time, as CSV.
//!
//! The header names the columns; `event` (create or delete), `vm`, `cpu`, `mem_gb` and `time_s` are
//! needed, others are ignored. `mem_gb` counts GiB. Every line is checked before anything is
//! replayed, and a line that cannot be understood is always an error with its number. Lines that
//! are well-formed but contradict those before them (a delete before its create, a second create,
//! time that runs backwards) are errors too, unless the reader is lenient: then they are counted
//! and skipped, or, for time, held at the time before.

use crate::SimError;
use serde::Serialize;
use std::collections::HashSet;
use std::fmt;
use std::path::Path;

/// Most virtual CPUs of one VM: far above any host.
const MAX_CPU: u32 = 65_536;
/// Most memory of one VM, in GiB: Placement's amounts are signed 32-bit MiB.
const MAX_MEM_GB: f64 = 2_097_151.0;
/// Latest time, in seconds: 31 years.
const MAX_TIME: f64 = 1e9;
/// Longest name of a VM.
const MAX_VM: usize = 200;
/// Most events of one trace: beyond, memory would be the limit.
const MAX_EVENTS: usize = 20_000_000;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A tenant requests a VM.
    Create,
    /// A tenant deletes a VM.
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VmSize {
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory, in MiB.
    pub ram_mb: u32,
}

impl VmSize {
    /// Name of the flavor for this size: `replay.c2m4`, `replay.c2m4.preemptible`.
    #[must_use]
    pub fn flavor_name(self, preemptible: bool) -> String {
        let kind = if preemptible { ".preemptible" } else { "" };
        format!("replay.c{}m{}{kind}", self.vcpus, self.gib())
    }

    /// Memory in GiB, without needless decimals.
    fn gib(self) -> String {
        format!("{}", f64::from(self.ram_mb) / 1024.0)
    }
}

impl fmt::Display for VmSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} vCPU, {} GiB", self.vcpus, self.gib())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TraceEvent {
    /// Its line in the file, counted from 1, the header included.
    pub line: u64,
    /// What happens.
    pub kind: EventKind,
    /// To which VM, as the trace names it.
    pub vm: String,
    /// Size of the VM; of a delete, that of its create.
    pub shape: VmSize,
    /// When, in seconds from the trace's zero.
    pub at: f64,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions {
    /// Only the first so many events.
    pub limit: Option<usize>,
    /// Count and skip lines that contradict those before them.
    pub lenient: bool,
}

/// What a lenient reader has skipped or mended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Irregularities {
    /// Deletes of VMs that were not there.
    pub deletes_without_create: u64,
    /// Creates of VMs that were there already.
    pub repeated_creates: u64,
    /// Events earlier than the one before.
    pub backwards: u64,
}

impl Irregularities {
    /// How many in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.deletes_without_create + self.repeated_creates + self.backwards
    }
}

/// A trace, read and checked.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The events in order.
    pub events: Vec<TraceEvent>,
    /// What was skipped or mended.
    pub irregularities: Irregularities,
}

/// Where the columns stand.
struct Columns {
    count: usize,
    event: usize,
    vm: usize,
    cpu: usize,
    mem_gb: usize,
    time_s: usize,
}

impl Trace {
    /// Reads a file: plain, gzip or zstd.
    ///
    /// # Errors
    /// Everything that [`SimError`] says about files and lines.
    pub fn read(path: &Path, options: ReadOptions) -> Result<Self, SimError> {
        Self::parse(&ebbtide_files::read(path)?, path, options)
    }

    /// Reads from memory; `path` is for messages only.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn parse(bytes: &[u8], path: &Path, options: ReadOptions) -> Result<Self, SimError> {
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true) // A cut line gets our own message.
            .trim(csv::Trim::All)
            .from_reader(bytes);
        let headers = reader.headers().map_err(|e| csv_error(path, &e))?.clone();
        let columns = Columns::find(&headers, path)?;
        let mut trace = Self::default();
        let mut alive: HashSet<String> = HashSet::new();
        let mut shapes = std::collections::HashMap::new();
        let mut clock = 0.0_f64;
        for record in reader.records() {
            if options
                .limit
                .is_some_and(|limit| trace.events.len() >= limit)
            {
                break;
            }
            let record = record.map_err(|e| csv_error(path, &e))?;
            let line = record.position().map_or(0, csv::Position::line);
            let event = columns
                .event(&record, line)
                .map_err(|problem| SimError::Line {
                    path: path.to_path_buf(),
                    line,
                    problem,
                })?;
            let mut irregular = |counter: fn(&mut Irregularities) -> &mut u64, problem: String| {
                *counter(&mut trace.irregularities) += 1;
                if options.lenient {
                    Ok(())
                } else {
                    Err(SimError::Order {
                        path: path.to_path_buf(),
                        line,
                        problem,
                    })
                }
            };
            let mut event = event;
            if event.at < clock {
                irregular(
                    |i| &mut i.backwards,
                    format!("time runs backwards, from {clock} s to {} s", event.at),
                )?;
                event.at = clock;
            }
            match event.kind {
                EventKind::Create => {
                    if !alive.insert(event.vm.clone()) {
                        irregular(
                            |i| &mut i.repeated_creates,
                            format!("vm {:?} is created but it is there already", event.vm),
                        )?;
                        continue;
                    }
                    shapes.insert(event.vm.clone(), event.shape);
                }
                EventKind::Delete => {
                    if !alive.remove(&event.vm) {
                        irregular(
                            |i| &mut i.deletes_without_create,
                            format!("vm {:?} is deleted but it is not there", event.vm),
                        )?;
                        continue;
                    }
                    event.shape = shapes.remove(&event.vm).unwrap_or(event.shape);
                }
            }
            clock = event.at;
            trace.events.push(event);
            if trace.events.len() > MAX_EVENTS {
                return Err(SimError::Line {
                    path: path.to_path_buf(),
                    line,
                    problem: format!("more than {MAX_EVENTS} events; use --limit"),
                });
            }
        }
        Ok(trace)
    }

    /// How many VMs are created.
    #[must_use]
    pub fn creates(&self) -> usize {
        self.events
            .iter()
            .filter(|event| event.kind == EventKind::Create)
            .count()
    }

    /// Time of the first and of the last event, in seconds; zero without events.
    #[must_use]
    pub fn span(&self) -> (f64, f64) {
        let at = |event: Option<&TraceEvent>| event.map_or(0.0, |event| event.at);
        (at(self.events.first()), at(self.events.last()))
    }
}

fn csv_error(path: &Path, error: &csv::Error) -> SimError {
    SimError::Line {
        path: path.to_path_buf(),
        line: error.position().map_or(1, csv::Position::line),
        problem: error.to_string(),
    }
}

impl Columns {
    fn find(headers: &csv::StringRecord, path: &Path) -> Result<Self, SimError> {
        let place = |name: &str| {
            let mut places = headers
                .iter()
                .enumerate()
                .filter(|(_, header)| *header == name);
            let wrong = |problem: String| SimError::Header {
                path: path.to_path_buf(),
                problem,
            };
            match (places.next(), places.next()) {
                (Some((place, _)), None) => Ok(place),
                (Some(_), Some(_)) => Err(wrong(format!("column {name} is there twice"))),
                (None, _) => {
                    let there: Vec<&str> = headers.iter().take(20).collect();
                    let there = shorten(&there.join(", "));
                    Err(wrong(format!(
                        "column {name} is missing; there are: {there}"
                    )))
                }
            }
        };
        Ok(Self {
            count: headers.len(),
            event: place("event")?,
            vm: place("vm")?,
            cpu: place("cpu")?,
            mem_gb: place("mem_gb")?,
            time_s: place("time_s")?,
        })
    }

    fn event(&self, record: &csv::StringRecord, line: u64) -> Result<TraceEvent, String> {
        if record.len() != self.count {
            return Err(format!(
                "{} fields where the header has {}: is the line cut?",
                record.len(),
                self.count
            ));
        }
        let field = |place: usize| record.get(place).unwrap_or("");
        let kind = match field(self.event) {
            "create" => EventKind::Create,
            "delete" => EventKind::Delete,
            other => {
                let other = shorten(other);
                return Err(format!("event {other:?} is unknown, use create or delete"));
            }
        };
        let vm = field(self.vm);
        if vm.is_empty() || vm.len() > MAX_VM || vm.chars().any(char::is_control) {
            return Err(format!(
                "vm {:?}: use 1 to {MAX_VM} printable bytes",
                shorten(vm)
            ));
        }
        let at = number(field(self.time_s), "time_s", 0.0, MAX_TIME)?;
        Ok(TraceEvent {
            line,
            kind,
            vm: vm.to_owned(),
            shape: self.shape(record)?,
            at,
        })
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Both are in range by then.
    fn shape(&self, record: &csv::StringRecord) -> Result<VmSize, String> {
        let field = |place: usize| record.get(place).unwrap_or("");
        let cpu = number(field(self.cpu), "cpu", 1.0, f64::from(MAX_CPU))?;
        if cpu.fract() != 0.0 {
            return Err(format!("cpu {cpu} is not a whole number"));
        }
        // The least that can be counted is one MiB.
        let mem_gb = number(field(self.mem_gb), "mem_gb", 1.0 / 1024.0, MAX_MEM_GB)?;
        Ok(VmSize {
            vcpus: cpu as u32,
            ram_mb: (mem_gb * 1024.0).round() as u32,
        })
    }
}

fn number(text: &str, column: &str, least: f64, most: f64) -> Result<f64, String> {
    let value: f64 = text
        .parse()
        .map_err(|_| format!("{column} {:?} is not a number", shorten(text)))?;
    // NaN is in no range.
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!(
            "{column} {} is out of range, allowed is {least} to {most}",
            shorten(text)
        ))
    }
}

fn shorten(text: &str) -> String {
    ebbtide_model::names::shorten(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "seq,event,vm,cpu,mem_gb,time_s,cpu_mul,is_double_numa\n";

    fn parse(lines: &str, lenient: bool) -> Result<Trace, SimError> {
        let text = format!("{HEADER}{lines}");
        let options = ReadOptions {
            lenient,
            limit: None,
        };
        Trace::parse(text.as_bytes(), Path::new("t.csv"), options)
    }

    #[test]
    fn a_good_trace_is_read_by_its_header() {
        let trace = parse("0,create,a,2,4,0.5,1,0\n1,delete,a,2,4,9,1,0\n", false).unwrap();
        assert_eq!(trace.creates(), 1);
        assert_eq!(trace.span(), (0.5, 9.0));
        let shape = VmSize {
            vcpus: 2,
            ram_mb: 4096,
        };
        assert_eq!(trace.events[1].shape, shape);
        assert_eq!(trace.events[1].line, 3);
        assert_eq!(shape.flavor_name(false), "replay.c2m4");
        assert_eq!(shape.flavor_name(true), "replay.c2m4.preemptible");
        let half = VmSize {
            vcpus: 1,
            ram_mb: 512,
        };
        assert_eq!(half.flavor_name(false), "replay.c1m0.5");

        let other_order = "time_s,vm,event,mem_gb,cpu\n1,x,create,0.5,1\n";
        let trace = Trace::parse(
            other_order.as_bytes(),
            Path::new("t"),
            ReadOptions::default(),
        )
        .unwrap();
        assert_eq!(trace.events[0].shape, half);
    }

    #[test]
    fn every_bad_line_is_refused_with_its_number() {
        let good = "0,create,a,2,4,0,1,0\n";
        for (bad, says) in [
            ("1,create,b,2", "cut"),
            ("1,create,b,2,4,1,1,0,9", "fields"),
            ("1,start,b,2,4,1,1,0", "\"start\" is unknown"),
            ("1,create,,2,4,1,1,0", "vm"),
            ("1,create,b,-2,4,1,1,0", "cpu -2 is out of range"),
            ("1,create,b,0,4,1,1,0", "cpu 0 is out of range"),
            ("1,create,b,1.5,4,1,1,0", "whole"),
            ("1,create,b,NaN,4,1,1,0", "cpu NaN is out of range"),
            ("1,create,b,2,inf,1,1,0", "mem_gb inf is out of range"),
            ("1,create,b,2,1e300,1,1,0", "mem_gb 1e300 is out of range"),
            ("1,create,b,2,-1,1,1,0", "mem_gb -1 is out of range"),
            ("1,create,b,2,x,1,1,0", "mem_gb \"x\" is not a number"),
            ("1,create,b,2,4,-1,1,0", "time_s -1 is out of range"),
            ("1,create,b,2,4,NaN,1,0", "time_s NaN is out of range"),
            ("1,create,b,2,4,,1,0", "time_s \"\" is not a number"),
        ] {
            for lenient in [false, true] {
                let error = parse(&format!("{good}{bad}\n"), lenient).unwrap_err();
                let text = error.to_string();
                assert!(
                    text.contains("line 3") && text.contains(says),
                    "{bad:?}: {text}"
                );
                assert_eq!(error.code(), "EB-SIM-003");
            }
        }
    }

    #[test]
    fn contradictions_stop_a_strict_reader_and_are_counted_by_a_lenient_one() {
        let lines = "0,delete,a,1,1,0,1,0\n1,create,b,1,1,5,1,0\n2,create,b,1,1,6,1,0\n\
                     3,create,c,1,1,2,1,0\n4,delete,b,1,1,7,1,0\n5,delete,b,1,1,8,1,0\n";
        let error = parse(lines, false).unwrap_err();
        assert_eq!(error.code(), "EB-SIM-004");
        assert!(error.to_string().contains("line 2"), "{error}");
        assert!(error.next_step().unwrap().contains("--lenient"));
        let trace = parse(lines, true).unwrap();
        let expected = Irregularities {
            deletes_without_create: 2,
            repeated_creates: 1,
            backwards: 1,
        };
        assert_eq!(trace.irregularities, expected);
        let kept: Vec<(u64, f64)> = trace.events.iter().map(|e| (e.line, e.at)).collect();
        assert_eq!(kept, [(3, 5.0), (5, 5.0), (6, 7.0)]);
    }

    #[test]
    fn a_header_without_a_needed_column_is_refused() {
        for (header, says) in [
            ("event,vm,cpu,mem_gb", "time_s is missing"),
            ("vm,vm,cpu,mem_gb,time_s,event", "twice"),
            ("", "event is missing"),
        ] {
            let error = Trace::parse(header.as_bytes(), Path::new("t"), ReadOptions::default())
                .unwrap_err();
            assert!(error.to_string().contains(says), "{header:?}: {error}");
        }
    }

    #[test]
    fn a_limit_keeps_the_beginning_and_does_not_look_further() {
        let text = format!("{HEADER}0,create,a,1,1,0,1,0\n1,create,b,1,1,1,1,0\nnonsense\n");
        let options = ReadOptions {
            limit: Some(2),
            lenient: false,
        };
        let trace = Trace::parse(text.as_bytes(), Path::new("t"), options).unwrap();
        assert_eq!(trace.events.len(), 2);
    }

    #[test]
    fn compressed_files_are_read_whatever_their_name_and_cut_ones_refused() {
        use std::io::Write;
        let text = format!("{HEADER}0,create,a,1,1,0,1,0\n");
        let directory = tempfile::tempdir().unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let frame = ruzstd::encoding::compress_to_vec(text.as_bytes(), level);
        let second = ruzstd::encoding::compress_to_vec(&b"1,create,b,1,1,1,1,0\n"[..], level);
        let frames = [frame.clone(), second].concat();
        for (bytes, creates) in [
            (text.as_bytes(), 1),
            (gzip.as_slice(), 1),
            (frame.as_slice(), 1),
            (frames.as_slice(), 2),
        ] {
            let path = directory.path().join("trace.csv");
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(
                Trace::read(&path, ReadOptions::default())
                    .unwrap()
                    .creates(),
                creates
            );
        }
        for bytes in [&gzip[..gzip.len() / 2], &frame[..frame.len() / 2]] {
            let path = directory.path().join("cut.csv");
            std::fs::write(&path, bytes).unwrap();
            let error = Trace::read(&path, ReadOptions::default()).unwrap_err();
            assert_eq!(error.code(), "EB-SIM-001", "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_input_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let with_header = [HEADER.as_bytes(), &bytes].concat();
            for lenient in [false, true] {
                let options = ReadOptions { lenient, limit: None };
                let _ = Trace::parse(&bytes, Path::new("t"), options);
                let _ = Trace::parse(&with_header, Path::new("t"), options);
            }
        }
    }
}
