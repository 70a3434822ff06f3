//! What an audit found as metrics, in a file that the node exporter's textfile collector reads.

use ebbtide_files::FileError;
use ebbtide_runtime::clock;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Codes by which capacity was given twice or is used without a right. Always in the file, so that
/// an alert on them sees a zero while nothing is wrong.
const OVER_CAPACITY: [&str; 5] = [
    "EB-AUDIT-001",
    "EB-AUDIT-010",
    "EB-AUDIT-011",
    "EB-AUDIT-104",
    "EB-AUDIT-105",
];

/// Writes the number of findings by code. The file appears in one step: the collector never reads
/// half of it.
///
/// # Errors
/// The file system's.
pub(super) fn write<'a>(
    path: &Path,
    codes: impl Iterator<Item = &'a str>,
) -> Result<(), FileError> {
    let now = clock::unix_millis() / 1000;
    let part = path.with_extension("part");
    ebbtide_files::write(&part, text(codes, now))?;
    std::fs::rename(&part, path).map_err(|error| FileError::Write {
        path: path.to_path_buf(),
        problem: error.to_string(),
    })
}

fn text<'a>(codes: impl Iterator<Item = &'a str>, now: i64) -> String {
    let mut counts: BTreeMap<&str, u32> = OVER_CAPACITY.map(|code| (code, 0)).into();
    for code in codes {
        *counts.entry(code).or_default() += 1;
    }
    let mut text = String::from(
        "# HELP ebbtide_audit_findings Disagreements that the last audit found, by code\n\
         # TYPE ebbtide_audit_findings gauge\n",
    );
    for (code, count) in counts {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "ebbtide_audit_findings{{code=\"{code}\"}} {count}");
    }
    text.push_str(
        "# HELP ebbtide_audit_timestamp_seconds When the last audit ended\n\
         # TYPE ebbtide_audit_timestamp_seconds gauge\n",
    );
    let _ = writeln!(text, "ebbtide_audit_timestamp_seconds {now}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_by_code_and_over_capacity_is_there_without_any() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ebbtide.prom");
        let codes = ["EB-AUDIT-002", "EB-AUDIT-010", "EB-AUDIT-002"];
        write(&path, codes.into_iter()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for (code, count) in [("001", 0), ("002", 2), ("010", 1), ("105", 0)] {
            let line = format!("ebbtide_audit_findings{{code=\"EB-AUDIT-{code}\"}} {count}");
            assert!(text.lines().any(|one| one == line), "{text}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(
            text.contains("\nebbtide_audit_timestamp_seconds 1"),
            "{text}"
        );
    }
}
