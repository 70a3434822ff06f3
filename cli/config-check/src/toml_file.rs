//! A TOML file with the place of every key.

use crate::finding::{Finding, Level, Position, code};
use crate::nearest;
use crate::registry::{self, ConfigKind};
use ebbtide_model::toml_text;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

#[derive(Debug)]
pub(crate) struct TomlFile {
    /// Without the keys that do not exist.
    pub(crate) table: Table,
    /// Where each key stands: `engine.weighers[1].multiplier`.
    places: BTreeMap<String, Position>,
}

/// Lines and columns of bytes.
pub(crate) struct Lines<'a>(pub(crate) &'a str);

impl Lines<'_> {
    pub(crate) fn position(&self, byte: usize) -> Position {
        let before = self.0.get(..byte).unwrap_or(self.0);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Position {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

impl TomlFile {
    /// Reads a file and tells of keys that do not exist.
    ///
    /// # Errors
    /// What is wrong with its syntax.
    pub(crate) fn read(kind: ConfigKind, text: &str) -> Result<(Self, Vec<Finding>), Box<Finding>> {
        let lines = Lines(text);
        let syntax = |error: &toml::de::Error| {
            Finding::new(Level::Error, code::SYNTAX, "")
                .at(error.span().map(|span| lines.position(span.start)))
                .what(format!(
                    "this is no TOML: {}",
                    toml_text::without_values(error.message())
                ))
                .why("nothing of the file is used, and the program does not start")
                .next("correct the line; text is in \"quotes\", tables begin with [name]")
        };
        let read = DeTable::parse(text).map_err(|error| Box::new(syntax(&error)))?;
        let mut table: Table = text.parse().map_err(|error| Box::new(syntax(&error)))?;
        let mut file = Self {
            table: Table::new(),
            places: BTreeMap::new(),
        };
        file.note("", read.get_ref(), &lines);
        let mut findings = Vec::new();
        file.drop_unknown(kind, "", "", &mut table, &mut findings);
        file.table = table;
        Ok((file, findings))
    }

    /// Where a key stands, or the table that it would be in.
    pub(crate) fn place(&self, key: &str) -> Option<Position> {
        let mut key = key;
        loop {
            if let Some(place) = self.places.get(key) {
                return Some(*place);
            }
            key = key.rsplit_once(['.', '['])?.0;
        }
    }

    /// True if the file says something about this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    fn note(&mut self, prefix: &str, table: &DeTable<'_>, lines: &Lines<'_>) {
        for (key, value) in table {
            let path = join(prefix, key.get_ref());
            let at = lines.position(key.span().start);
            self.places.insert(path.clone(), at);
            self.note_value(&path, value, lines);
        }
    }

    fn note_value(&mut self, path: &str, value: &Spanned<DeValue<'_>>, lines: &Lines<'_>) {
        match value.get_ref() {
            DeValue::Table(table) => self.note(path, table, lines),
            DeValue::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    let at = lines.position(value.span().start);
                    self.places.insert(path.clone(), at);
                    self.note_value(&path, value, lines);
                }
            }
            _ => {}
        }
    }

    /// Takes out what does not exist. `path` is as in the file, `known` as in the registry.
    fn drop_unknown(
        &self,
        kind: ConfigKind,
        path: &str,
        known: &str,
        table: &mut Table,
        findings: &mut Vec<Finding>,
    ) {
        let names: Vec<String> = table.keys().cloned().collect();
        for name in names {
            let (path, known) = (join(path, &name), join(known, &name));
            match lookup(kind, &known) {
                Found::Key => {}
                Found::Table => match table.get_mut(&name) {
                    Some(Value::Table(inner)) => {
                        self.drop_unknown(kind, &path, &known, inner, findings);
                    }
                    Some(Value::Array(items)) => {
                        for (index, item) in items.iter_mut().enumerate() {
                            if let Value::Table(inner) = item {
                                let (path, known) =
                                    (format!("{path}[{index}]"), format!("{known}[]"));
                                self.drop_unknown(kind, &path, &known, inner, findings);
                            }
                        }
                    }
                    _ => {}
                },
                Found::Nothing => {
                    table.remove(&name);
                    findings.push(self.unknown(kind, &path, &known));
                }
            }
        }
    }

    fn unknown(&self, kind: ConfigKind, path: &str, known: &str) -> Finding {
        let (table, name) = known.rsplit_once('.').unwrap_or(("", known));
        let beside = children(kind, table);
        let near = nearest::name(name, beside.iter().map(String::as_str));
        // It may be a key of another table.
        let elsewhere = || {
            let keys = registry::keys(kind);
            let found = keys
                .iter()
                .find(|key| key.path.rsplit('.').next() == Some(name));
            found.map(|key| key.path.clone())
        };
        let next = match (near, elsewhere()) {
            (Some(near), _) => format!("did you mean {}?", join(table, &near)),
            (None, Some(elsewhere)) => format!("there is {elsewhere}: is it in the wrong table?"),
            (None, None) if table.is_empty() => format!("there are {}", beside.join(", ")),
            (None, None) => {
                format!("`ebbtide-manage config explain {table}` lists the keys of this table")
            }
        };
        Finding::new(Level::Error, code::UNKNOWN, path)
            .at(self.place(path))
            .what(format!("there is no key {path}"))
            .why("unknown keys are refused, because a typing error would otherwise be a silent default: the program does not start")
            .next(next)
    }
}

enum Found {
    Key,
    Table,
    Nothing,
}

/// What a path of the registry's form is.
fn lookup(kind: ConfigKind, known: &str) -> Found {
    let mut below = false;
    for key in registry::keys(kind) {
        if key.path == known {
            return Found::Key;
        }
        let rest = key.path.strip_prefix(known);
        below |= rest.is_some_and(|rest| rest.starts_with('.') || rest.starts_with("[]."));
    }
    if below { Found::Table } else { Found::Nothing }
}

/// The names that exist in a table.
fn children(kind: ConfigKind, table: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for key in registry::keys(kind) {
        let rest = if table.is_empty() {
            Some(key.path.as_str())
        } else {
            key.path
                .strip_prefix(table)
                .and_then(|rest| rest.strip_prefix('.'))
        };
        let name = rest.and_then(|rest| rest.split(['.', '[']).next());
        if let Some(name) = name
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    names
}

pub(crate) fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}.{name}")
    }
}

/// What the program itself says against a table, all of it: whatever it names is put back to its
/// default, and it is asked again.
///
/// `ask` answers with the program's code and words, without a login in them.
pub(crate) fn refusals(
    file: &TomlFile,
    kind: ConfigKind,
    ask: impl Fn(&Table) -> Option<(&'static str, String)>,
) -> Vec<Finding> {
    let mut table = file.table.clone();
    let mut findings: Vec<Finding> = Vec::new();
    // Each round takes at least one key out.
    for _ in 0..file.places.len().saturating_add(1) {
        let Some((program, words)) = ask(&table) else {
            return findings;
        };
        let key = blamed(file, &table, &words);
        let next = match &key {
            Some(key) => format!(
                "`ebbtide-manage config explain {}` says what it may be",
                explained(key)
            ),
            None => format!("`ebbtide-manage config explain --kind {kind}` lists all keys"),
        };
        let finding = Finding::new(Level::Error, code::VALUE, key.clone().unwrap_or_default())
            .at(key.as_deref().and_then(|key| file.place(key)))
            .what(format!("{program}: {words}"))
            .why("the program itself says so: it does not start")
            .next(next);
        findings.push(finding);
        match key {
            Some(key) if remove(&mut table, removable(kind, &key)) => {}
            _ => return findings,
        }
    }
    findings
}

/// What can be taken out so that the rest still makes sense: of rows that need the key the whole
/// list.
fn removable(kind: ConfigKind, key: &str) -> &str {
    let known = |known: &&registry::Key| without_numbers(&known.path) == without_numbers(key);
    let keys = registry::keys(kind);
    let required = keys.iter().find(known).is_some_and(|known| known.required);
    match key.split_once('[') {
        Some((list, _)) if required => list,
        _ => key,
    }
}

fn without_numbers(path: &str) -> String {
    path.chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn explained(key: &str) -> String {
    let mut plain = String::new();
    for part in key.split('.') {
        plain = join(&plain, part.split('[').next().unwrap_or(part));
    }
    plain
}

/// The key of the table that the words name: by its whole name rather than by its last part, early
/// rather than late.
fn blamed(file: &TomlFile, table: &Table, words: &str) -> Option<String> {
    let mut named: Vec<(usize, usize, &String)> = Vec::new();
    for key in file.places.keys().filter(|key| is_there(table, key)) {
        // The engine's and the plugins' own errors leave names of tables out; short names are
        // everyday words.
        let ends = std::iter::successors(Some(key.as_str()), |end| Some(end.split_once('.')?.1));
        let mut ends = ends
            .enumerate()
            .filter(|(rank, end)| *rank == 0 || end.len() > 3);
        if let Some((rank, at)) = ends.find_map(|(rank, end)| Some((rank, position(words, end)?))) {
            named.push((rank, at, key));
        }
    }
    // A table is named only on the way to its key.
    let leads = |key: &String| {
        let below = |other: &&String| {
            other
                .strip_prefix(key.as_str())
                .is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        named.iter().any(|(_, _, other)| below(other))
    };
    let found = named.iter().filter(|(_, _, key)| !leads(key)).min();
    found.map(|(_, _, key)| (*key).clone())
}

/// Where a name stands by itself in words.
pub(crate) fn position(words: &str, name: &str) -> Option<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    words.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = words[..*at].chars().next_back();
        let after = words[at + name.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

fn steps(key: &str) -> Vec<String> {
    key.replace('[', ".[")
        .split('.')
        .map(str::to_owned)
        .collect()
}

fn is_there(table: &Table, key: &str) -> bool {
    find(&mut table.clone(), &steps(key), &mut |_, _| ()).is_some()
}

fn remove(table: &mut Table, key: &str) -> bool {
    let mut take = |table: &mut Table, name: &str| drop(table.remove(name));
    find(table, &steps(key), &mut take).is_some()
}

/// Calls with the table in which the key is; an item of a list is dealt with as the list.
fn find(table: &mut Table, steps: &[String], done: &mut dyn FnMut(&mut Table, &str)) -> Option<()> {
    let (first, rest) = steps.split_first()?;
    table.get(first)?;
    let Some((next, after)) = rest.split_first() else {
        done(table, first);
        return Some(());
    };
    if let Some(index) = next.strip_prefix('[') {
        let index: usize = index.trim_end_matches(']').parse().ok()?;
        if after.is_empty() {
            done(table, first);
            return Some(());
        }
        let item = table.get_mut(first)?.get_mut(index)?.as_table_mut()?;
        return find(item, after, done);
    }
    find(table.get_mut(first)?.as_table_mut()?, rest, done)
}
