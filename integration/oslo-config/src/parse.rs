//! The file format (`oslo_config/iniparser.py`).
//!
//! General INI readers differ from it in ways that change what an operator's file means. rust-ini
//! 0.21 with the options that come closest (no escapes, no quotes, indented continuation) reads 58
//! of 343 odd files of our tests otherwise than Python does: it keeps the quotes around a value,
//! joins a continuation line to what stands above an empty line or a comment, takes values before
//! the first section, doubles line breaks in files with carriage returns; and it does not tell the
//! line of a value, which an error message needs. So the hundred lines below are ours.
//!
//! A key may come several times, in several sections of one name, and all values count; a
//! continuation line begins with a blank or a tab and is joined with a line break; an empty line or
//! a comment ends a value, a comment sign after a value does not; `:` separates as well as `=`,
//! whichever comes first; one pair of quotes around a value falls away, and a backslash is a
//! backslash.

/// A value with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) section: String,
    pub(crate) key: String,
    /// Lines joined by line breaks.
    pub(crate) value: String,
    /// Number of the line where it begins, from 1.
    pub(crate) line: usize,
}

/// Number of a line, and what is wrong with it.
pub(crate) type ParseProblem = (usize, &'static str);

/// What Python's `str.strip` takes for white space: Unicode's, and four separators.
pub(crate) fn is_space(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\x1c'..='\x1f')
}

/// Reads a file's text.
pub(crate) fn parse(text: &str) -> Result<Vec<Assignment>, ParseProblem> {
    let mut read = Vec::new();
    let mut section: Option<String> = None;
    let mut open: Option<Assignment> = None;
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    for (index, line) in text.split('\n').enumerate() {
        let number = index + 1;
        let line = line.trim_end_matches(is_space);
        if line.starts_with([' ', '\t']) {
            // A line of blanks alone was trimmed to nothing and is an empty one.
            let Some(open) = &mut open else {
                return Err((number, "a continuation line without a value before it"));
            };
            open.value.push('\n');
            open.value.push_str(line.trim_start_matches(is_space));
            continue;
        }
        read.extend(open.take());
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some(name) = rest.strip_suffix(']') else {
                return Err((number, "a section has to end with ]"));
            };
            if name.is_empty() {
                return Err((number, "a section needs a name"));
            }
            section = Some(name.to_owned());
            continue;
        }
        let Some(at) = line.find(['=', ':']) else {
            return Err((number, "there is no = or : between an option and its value"));
        };
        let key = line[..at].trim_matches(is_space);
        if key.is_empty() {
            return Err((number, "there is no name before the = or :"));
        }
        let Some(section) = &section else {
            return Err((number, "a value before the first section"));
        };
        open = Some(Assignment {
            section: section.clone(),
            key: key.to_owned(),
            value: unquoted(line[at + 1..].trim_matches(is_space)).to_owned(),
            line: number,
        });
    }
    read.extend(open);
    Ok(read)
}

/// Without one pair of quotes of the same kind. A lone quote is a pair with itself, as in Python.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            if rest.is_empty() {
                return rest;
            }
            return rest.strip_suffix(quote).unwrap_or(value);
        }
    }
    value
}
