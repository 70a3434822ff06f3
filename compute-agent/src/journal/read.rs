//! Reads a journal after a crash or damage; see the module above for the format and the rule.

use super::{Header, VERSION, crc32};
use crate::error::AgentError;
use crate::protocol::JournalRecord;
use ebbtide_model::names;
use std::path::Path;

/// The format version without positions.
const WITHOUT_POSITIONS: u32 = 1;

/// Content of a file.
#[derive(Debug)]
pub(super) struct JournalContent {
    pub(super) records: Vec<JournalRecord>,
    /// End of the valid part; what follows may be dropped.
    pub(super) good_bytes: u64,
    /// The file must be rewritten: it is empty, or of an older version.
    pub(super) outdated: bool,
}

/// One line of the file.
struct Line<'a> {
    /// Line number, from 1.
    number: usize,
    /// Its position in the file.
    at: u64,
    text: &'a [u8],
    /// Whether it ends with a newline.
    ended: bool,
}

impl Line<'_> {
    /// Position of the byte behind it.
    fn end(&self) -> u64 {
        self.at + self.text.len() as u64 + u64::from(self.ended)
    }

    /// The text behind the checksum, if the checksum is right.
    fn checked(&self) -> Result<&str, String> {
        if !self.ended {
            return Err("it has no end".to_owned());
        }
        let text = std::str::from_utf8(self.text).map_err(|_| "it is not UTF-8".to_owned())?;
        let (sum, text) = text
            .split_once(' ')
            .ok_or_else(|| "it has no checksum".to_owned())?;
        let expected = format!("{:08x}", crc32(text.as_bytes()));
        if sum == expected {
            Ok(text)
        } else {
            Err(format!(
                "its checksum is {expected}, it says {:?}",
                names::shorten(sum)
            ))
        }
    }

    /// The beginning of this line's append, and its JSON.
    fn placed(&self) -> Result<(u64, &str), String> {
        let text = self.checked()?;
        let (begins, json) =
            begins(text).ok_or_else(|| "it does not say where it was written".to_owned())?;
        if begins > self.at {
            return Err("it was written somewhere else".to_owned());
        }
        Ok((begins, json))
    }

    /// True if another append began inside this damaged line: the newline between the two is
    /// damaged. An append begins at its own first line, so that line names its own place.
    fn swallows_an_append(&self) -> bool {
        (1..self.text.len()).any(|offset| {
            // Skips text without checksum, blank and position in front, to avoid computing its
            // checksum.
            let text = &self.text[offset..];
            let Some(&[b' ', digit]) = text.get(8..10) else {
                return false;
            };
            let line = Line {
                at: self.at + offset as u64,
                text,
                ..*self
            };
            digit.is_ascii_digit() && line.placed().is_ok_and(|(begins, _)| begins == line.at)
        })
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    let parts = bytes.split_inclusive(|byte| *byte == b'\n');
    parts.enumerate().map(move |(index, part)| {
        let text = part.strip_suffix(b"\n");
        let line = Line {
            number: index + 1,
            at,
            text: text.unwrap_or(part),
            ended: text.is_some(),
        };
        at += part.len() as u64;
        line
    })
}

/// Reads all valid records.
///
/// # Errors
/// [`AgentError::JournalCorrupt`], [`AgentError::JournalForeign`].
pub(super) fn read(path: &Path, bytes: &[u8], host: &str) -> Result<JournalContent, AgentError> {
    let mut found = JournalContent {
        records: Vec::new(),
        good_bytes: 0,
        outdated: true,
    };
    let mut rest = lines(bytes);
    let Some(first) = rest.next() else {
        return Ok(found);
    };
    // The header is never appended, so it cannot be torn.
    let header = first
        .checked()
        .map_err(|problem| corrupt(path, 1, problem))?;
    let header = check_header(path, header, host)?;
    found.good_bytes = first.end();
    found.outdated = header.ebbtide_agent_journal != VERSION;
    let whole = first.end().saturating_add(header.whole_bytes);
    let mut before = None;
    while let Some(line) = rest.next() {
        let read = match found.outdated {
            true => line.checked().map(|json| (0, json)),
            false => line.placed(),
        };
        let json = match read {
            Ok((begins, json)) => {
                before = Some(begins);
                json
            }
            Err(problem) => {
                let droppable = match found.outdated {
                    // Blocks of one write may reach the disk in any order, so a torn end may have
                    // its newline.
                    true => line.end() == bytes.len() as u64,
                    false => line.at >= whole && is_last_append(&line, before, rest),
                };
                if droppable {
                    return Ok(found);
                }
                return Err(corrupt(path, line.number, problem));
            }
        };
        let record = serde_json::from_str(json).map_err(|error| {
            let problem = format!("it is no record: {}", names::brief(error));
            corrupt(path, line.number, problem)
        })?;
        found.records.push(record);
        found.good_bytes = line.end();
    }
    if found.good_bytes < whole {
        let problem = format!("the file ends here, {whole} bytes were written at least");
        return Err(corrupt(path, found.records.len() + 2, problem));
    }
    Ok(found)
}

/// True if a damaged line belongs to the last append: every valid line behind it says that its
/// append began there, or where that of the line before did. A later append would have begun
/// elsewhere, and an append begins only when the one before it is durable.
fn is_last_append<'a>(
    damaged: &Line<'_>,
    before: Option<u64>,
    mut behind: impl Iterator<Item = Line<'a>>,
) -> bool {
    !damaged.swallows_an_append()
        && behind.all(|line| match line.checked() {
            Err(_) => true,
            Ok(text) => {
                let begins = begins(text).map(|(begins, _)| begins);
                begins.is_some() && (begins == before || begins == Some(damaged.at))
            }
        })
}

/// Where an append began, and the JSON behind that.
fn begins(text: &str) -> Option<(u64, &str)> {
    let (begins, json) = text.split_once(' ')?;
    Some((begins.parse().ok()?, json))
}

fn corrupt(path: &Path, line: usize, problem: String) -> AgentError {
    AgentError::JournalCorrupt {
        path: path.to_owned(),
        line,
        problem,
    }
}

fn check_header(path: &Path, json: &str, host: &str) -> Result<Header, AgentError> {
    let header: Header = serde_json::from_str(json)
        .map_err(|error| corrupt(path, 1, format!("it is no header: {}", names::brief(error))))?;
    let foreign = |found: String, expected: String| {
        let path = path.to_owned();
        Err(AgentError::JournalForeign {
            path,
            found,
            expected,
        })
    };
    if ![WITHOUT_POSITIONS, VERSION].contains(&header.ebbtide_agent_journal) {
        let found = format!("format version {}", header.ebbtide_agent_journal);
        return foreign(found, format!("an agent for format version {VERSION}"));
    }
    if header.host != host {
        let found = format!("host {:?}", names::shorten(&header.host));
        return foreign(found, format!("the agent of host {host:?}"));
    }
    Ok(header)
}
