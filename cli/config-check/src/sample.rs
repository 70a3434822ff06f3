//! A configuration file with every key: each in a comment, with what it does and its default.

use crate::registry::{self, ConfigKind, Key};
use std::fmt::Write as _;

/// Longest line of a comment, in columns.
const COLUMNS: usize = 100;

/// The file of this kind. Nothing in it is set, so that it means what no file at all means.
#[must_use]
pub fn sample(kind: ConfigKind) -> String {
    let mut page = format!("{}\n", head_line(kind));
    page += &comment(
        "Every key is here, with its default or, where it has none, an example. Remove the # in \
         front of a key, and of the table above it, to set it. `ebbtide-manage config check FILE` \
         judges the file.",
    );
    for table in tables(kind) {
        if !table.is_empty() {
            let _ = write!(page, "\n#{}\n", head(table, kind));
        }
        let keys = registry::keys(kind).iter();
        for key in keys.filter(|key| table_of(key) == table) {
            let name = key.path.strip_prefix(table).unwrap_or(&key.path);
            let name = name.trim_start_matches('.');
            let value = match key.default.as_str() {
                "" => key.example.as_str(),
                default => default,
            };
            let separator = if value.is_empty() { " =" } else { " = " };
            let _ = write!(page, "\n{}", comment(&key.what));
            let _ = writeln!(page, "#{name}{separator}{value}{}", note(key));
        }
    }
    page
}

/// The first line of the file of this kind.
pub(crate) fn head_line(kind: ConfigKind) -> String {
    format!("# {}.", kind.title())
}

/// The table in which a key stands.
fn table_of(key: &Key) -> &str {
    key.path.rsplit_once('.').map_or("", |(table, _)| table)
}

/// All tables, in the order in which they come first; keys of none come before all tables.
fn tables(kind: ConfigKind) -> Vec<&'static str> {
    let mut tables: Vec<&str> = Vec::new();
    for key in registry::keys(kind) {
        let table = table_of(key);
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    tables.sort_by_key(|table| !table.is_empty());
    tables
}

/// What a reader has to know of a value that is not the default.
fn note(key: &Key) -> &'static str {
    match (key.required, key.default.is_empty()) {
        (true, _) => "  # example; has to be there",
        (false, true) => "  # example; not set by default",
        (false, false) => "",
    }
}

/// The head of a table, of an entry of a list of tables, or of a section of nova.conf.
fn head(section: &str, kind: ConfigKind) -> String {
    let plain = section.replace("[]", "").replace('*', "NAME");
    match kind {
        ConfigKind::Scheduler | ConfigKind::Agent if section.ends_with("[]") => {
            format!("[[{plain}]]")
        }
        _ => format!("[{plain}]"),
    }
}

/// As lines of a comment.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > COLUMNS && line.len() > 1 {
            let _ = writeln!(lines, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(lines, "{line}");
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The sample with every key set that has a default. Entries of lists, tables of the operator's
    /// own, and tables with keys that have to be there stay away: they are not there by default.
    fn set(kind: ConfigKind) -> String {
        let all = sample(kind);
        let tables = all.split("\n#[").map(|table| {
            let keys = table.lines().filter(|line| !line.starts_with("# "));
            let keys: Vec<&str> = keys.map(|line| line.trim_start_matches('#')).collect();
            (table, keys)
        });
        let mut text = String::new();
        for (number, (table, keys)) in tables.enumerate() {
            let of_one = !table.starts_with('[') && !table.contains("NAME]");
            if !of_one || table.contains("has to be there") {
                continue;
            }
            text.push_str(if number == 0 { "" } else { "[" });
            for key in keys.iter().filter(|key| !key.contains("# example")) {
                text.push_str(key);
                text.push('\n');
            }
        }
        text
    }

    #[test]
    fn the_defaults_of_the_scheduler_are_its_defaults() {
        let parse = |text: &str| {
            ebbtide_config::Config::parse(Path::new("f"), text, std::iter::empty(), &[]).unwrap()
        };
        assert_eq!(parse(&sample(ConfigKind::Scheduler)), parse(""));
        let text = set(ConfigKind::Scheduler);
        assert!(text.lines().filter(|line| line.contains(" = ")).count() > 50);
        assert_eq!(parse(&text), parse(""));
    }

    #[test]
    fn the_defaults_of_the_agent_are_its_defaults() {
        let driver = "\n[driver.simulated]\ninventory = { VCPU = 4 }\n";
        let parse = |text: &str| {
            let text = format!("{text}{driver}");
            ebbtide_agent::Config::parse(Path::new("f"), &text, &[]).unwrap()
        };
        assert_eq!(parse(&sample(ConfigKind::Agent)), parse(""));
    }

    #[test]
    fn no_line_of_a_comment_is_longer_than_a_screen() {
        for kind in ConfigKind::ALL {
            for line in sample(kind).lines().filter(|line| line.starts_with("# ")) {
                assert!(line.len() <= COLUMNS, "{line}");
            }
        }
    }
}
