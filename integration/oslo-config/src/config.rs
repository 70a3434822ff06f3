//! Files, directories and the environment, read together (`ConfigOpts`).

use crate::error::{ConfigError, Result, ValueLocation};
use crate::option::{Opt, OptionType};
use crate::parse;
use crate::template::{self, TemplatePart};
use crate::value::{self, Value};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// How deep variables may refer to values with variables. Python stops at a thousand; real
/// configurations need fewer than ten.
const DEPTH: usize = 100;
/// How many variables one value may come to, all that they stand for included, plus the bytes of
/// these. A file of a few lines could ask for 2¹⁰⁰ of them otherwise.
const EXPANSION: usize = 1 << 20;

/// A configuration. Its values may be secret, so debug output shows where they came from only.
#[derive(Clone)]
pub struct Config {
    files: Vec<PathBuf>,
    dirs: Vec<PathBuf>,
    environment: BTreeMap<String, String>,
    /// In the order in which they were read: what comes later wins.
    parsed: Vec<ParsedFile>,
    /// Options whose defaults and older names count where a variable names them.
    known: HashMap<(String, &'static str), Opt>,
    /// Defaults that are known only here: the name of the machine, its address.
    defaults: HashMap<(String, String), String>,
    /// Which options were asked for, by group and name.
    asked: Arc<Mutex<BTreeSet<(String, String)>>>,
}

/// A value that a file has, as it stands there.
#[derive(Clone, PartialEq, Eq)]
pub struct FileValue {
    /// Its group.
    pub group: String,
    /// Its name.
    pub name: String,
    /// Its text, variables not replaced. It may be secret.
    pub text: String,
    /// Where it stands.
    pub place: ValueLocation,
}

impl fmt::Debug for FileValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [{}] {}", self.place, self.group, self.name)
    }
}

#[derive(Clone)]
struct ParsedFile {
    path: PathBuf,
    /// Values by group and name, each with its line.
    values: HashMap<(String, String), Vec<(String, usize)>>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("files", &self.files)
            .field("dirs", &self.dirs)
            .finish_non_exhaustive()
    }
}

/// `DEFAULT` is what it is; all other groups compare without case.
fn normalized(group: &str) -> String {
    if group == "DEFAULT" {
        group.to_owned()
    } else {
        group.to_lowercase()
    }
}

impl Config {
    /// Reads files, then directories (their `*.conf`, by name); what comes later wins. The
    /// environment of the process wins over all. Without any file or directory, use [`Self::find`].
    ///
    /// # Errors
    /// A file or directory that is not there or cannot be read, a line that is wrong.
    pub fn load(files: &[PathBuf], dirs: &[PathBuf]) -> Result<Self> {
        Self::load_with(
            files,
            dirs,
            std::env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            }),
        )
    }

    /// The same with an environment of one's own.
    ///
    /// # Errors
    /// See [`Self::load`].
    pub fn load_with(
        files: &[PathBuf],
        dirs: &[PathBuf],
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self> {
        let mut config = Self {
            files: files.to_vec(),
            dirs: dirs.to_vec(),
            environment: environment.into_iter().collect(),
            parsed: Vec::new(),
            known: HashMap::new(),
            defaults: HashMap::new(),
            asked: Arc::default(),
        };
        config.parsed = config.read_all()?;
        Ok(config)
    }

    /// A configuration of one file's text, without any environment; `path` is for messages only.
    ///
    /// # Errors
    /// A line that is wrong.
    pub fn of_text(path: &Path, text: &str) -> Result<Self> {
        let mut config = Self::load_with(&[], &[], [])?;
        config.parsed.push(parsed(path, text)?);
        Ok(config)
    }

    /// Everything that the files say, by group and name, each with all its values in their order.
    #[must_use]
    pub fn given(&self) -> Vec<FileValue> {
        let mut all = Vec::new();
        for parsed in &self.parsed {
            let mut values: Vec<_> = parsed.values.iter().collect();
            values.sort();
            for ((group, name), texts) in values {
                all.extend(texts.iter().map(|(text, line)| FileValue {
                    group: group.clone(),
                    name: name.clone(),
                    text: text.clone(),
                    place: parsed.place(*line),
                }));
            }
        }
        all
    }

    /// The options that were read so far, by group and name, without older names. After the program
    /// has read all its options, every other option in the files has no effect.
    #[must_use]
    pub fn asked(&self) -> BTreeSet<(String, String)> {
        let asked = self.asked.lock();
        asked.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ask(&self, group: &str, name: &str) {
        let asked = self.asked.lock();
        let mut asked = asked.unwrap_or_else(PoisonError::into_inner);
        asked.insert((normalized(group), name.to_owned()));
    }

    /// Reads what is named; where nothing is, what is found in the usual places
    /// ([`crate::default_paths`]). No file at all is no error: then all options have their
    /// defaults.
    ///
    /// # Errors
    /// See [`Self::load`].
    pub fn find(project: &str, program: &str, files: &[PathBuf], dirs: &[PathBuf]) -> Result<Self> {
        if !files.is_empty() || !dirs.is_empty() {
            return Self::load(files, dirs);
        }
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let (files, dirs) = crate::search::default_paths(project, program, &environment);
        Self::load(&files, &dirs)
    }

    /// Reads everything again. This configuration stays as it is, whatever happens.
    ///
    /// # Errors
    /// See [`Self::load`].
    pub fn reload(&self) -> Result<Self> {
        let mut fresh = self.clone();
        fresh.parsed = fresh.read_all()?;
        Ok(fresh)
    }

    /// The files that were read, in order.
    pub fn sources(&self) -> impl Iterator<Item = &Path> {
        self.parsed.iter().map(|parsed| parsed.path.as_path())
    }

    /// Makes options known, so that their defaults and older names count where a `$variable` names
    /// them.
    pub fn declare(&mut self, options: &[Opt]) {
        for option in options {
            self.known
                .insert((normalized(option.group), option.name), *option);
        }
    }

    /// Sets the default of an option that depends on the machine.
    pub fn set_default(&mut self, group: &str, name: &str, default: impl Into<String>) {
        self.defaults
            .insert((normalized(group), name.to_owned()), default.into());
    }

    /// All options of a group, by name, with variables replaced. For callers that read options by
    /// name and check the values themselves.
    ///
    /// # Errors
    /// A variable that stands for nothing.
    pub fn section(&self, group: &str) -> Result<BTreeMap<String, String>> {
        let wanted = normalized(group);
        let in_files = self.parsed.iter().flat_map(|parsed| parsed.values.keys());
        let mut names: BTreeSet<String> = in_files
            .filter(|(group, _)| *group == wanted)
            .map(|(_, name)| name.clone())
            .collect();
        let prefix = format!("OS_{}__", group.to_uppercase());
        let in_environment = self.environment.keys();
        names.extend(
            in_environment.filter_map(|name| Some(name.strip_prefix(&prefix)?.to_lowercase())),
        );
        let mut section = BTreeMap::new();
        for name in names {
            if let Some(value) = self.get(group, &name)? {
                section.insert(name, value);
            }
        }
        Ok(section)
    }

    /// What is said of an option, variables replaced, not checked: nothing, one text, or of an
    /// option that may come several times each one, oldest first. Its default is not among them.
    ///
    /// # Errors
    /// A variable that stands for nothing.
    pub fn texts(&self, option: &Opt) -> Result<Vec<(String, ValueLocation)>> {
        let mut texts = self.found(option);
        for (text, place) in &mut texts {
            let reading = ValueReader::of(option.group, option.name, place.clone());
            *text = self.substituted(text, &reading)?;
        }
        Ok(texts)
    }

    fn found(&self, option: &Opt) -> Vec<(String, ValueLocation)> {
        self.ask(option.group, option.name);
        let names: Vec<(&str, &str)> = std::iter::once((option.group, option.name))
            .chain(option.deprecated.iter().copied())
            .collect();
        match option.kind {
            OptionType::Many(_) => self.all(&names),
            _ => self.last(&names).into_iter().collect(),
        }
    }

    /// The default of an option: the machine's, else the declared one.
    fn default_of(&self, option: &Opt) -> Option<String> {
        let key = (normalized(option.group), option.name.to_owned());
        let declared = || option.default.map(str::to_owned);
        self.defaults.get(&key).cloned().or_else(declared)
    }

    fn read_all(&self) -> Result<Vec<ParsedFile>> {
        let mut all = Vec::new();
        for file in &self.files {
            all.push(read_file(file)?);
        }
        for dir in &self.dirs {
            for file in conf_files(dir)? {
                all.push(read_file(&file)?);
            }
        }
        Ok(all)
    }

    /// The last value that stands for a group and a name, variables replaced; `None` if there is
    /// none. For options of which nothing else is known; see [`Self::value`] for the others.
    ///
    /// # Errors
    /// A variable that stands for nothing.
    pub fn get(&self, group: &str, name: &str) -> Result<Option<String>> {
        match self.last(&[(group, name)]) {
            None => Ok(None),
            Some((text, place)) => self
                .substituted(&text, &ValueReader::of(group, name, place))
                .map(Some),
        }
    }

    /// The value of an option, or its default; `None` if it has none. An empty number is
    /// [`Value::Null`].
    ///
    /// # Errors
    /// A value that the option does not take, or a variable that stands for nothing.
    pub fn value(&self, option: &Opt) -> Result<Option<Value>> {
        self.value_at(option, None)
    }

    fn value_at(&self, option: &Opt, outer: Option<&ValueReader<'_>>) -> Result<Option<Value>> {
        let mut found = self.found(option);
        if found.is_empty() {
            found.extend(
                self.default_of(option)
                    .map(|text| (text, ValueLocation::Default)),
            );
        }
        let mut values = Vec::new();
        for (text, place) in found {
            let reading = match outer {
                None => ValueReader::of(option.group, option.name, place),
                Some(outer) => outer.below(option.group, option.name, place),
            };
            let text = self.substituted(&text, &reading)?;
            let read = value::read(option.kind, &text);
            values.push(read.map_err(|allowed| ConfigError::Value {
                place: Box::new(reading.place),
                group: option.group.to_owned(),
                name: option.name.to_owned(),
                shown: if option.secret {
                    "***".to_owned()
                } else {
                    text
                },
                allowed,
            })?);
        }
        Ok(match option.kind {
            OptionType::Many(_) if !values.is_empty() => Some(Value::List(values)),
            _ => values.pop(),
        })
    }

    /// The last value under any of the names; within a file the names stand in order.
    fn last(&self, names: &[(&str, &str)]) -> Option<(String, ValueLocation)> {
        if let Some((name, text)) = self.variable(names) {
            return Some((text, ValueLocation::Variable(name)));
        }
        self.parsed.iter().rev().find_map(|parsed| {
            names.iter().find_map(|(group, name)| {
                let all = parsed
                    .values
                    .get(&(normalized(group), (*name).to_owned()))?;
                let (text, line) = all.last()?;
                Some((text.clone(), parsed.place(*line)))
            })
        })
    }

    /// All values under any of the names, oldest first.
    fn all(&self, names: &[(&str, &str)]) -> Vec<(String, ValueLocation)> {
        if let Some((name, text)) = self.variable(names) {
            return vec![(text, ValueLocation::Variable(name))];
        }
        let mut found = Vec::new();
        for parsed in &self.parsed {
            // Within a file the values of older names stand before those of newer ones.
            for (group, name) in names.iter().rev() {
                let key = (normalized(group), (*name).to_owned());
                for (text, line) in parsed.values.get(&key).into_iter().flatten() {
                    found.push((text.clone(), parsed.place(*line)));
                }
            }
        }
        found
    }

    /// `OS_GROUP__NAME`, for the present name only.
    fn variable(&self, names: &[(&str, &str)]) -> Option<(String, String)> {
        let (group, name) = names.first()?;
        let variable = format!(
            "OS_{}__{}",
            group.to_uppercase(),
            name.to_uppercase().replace('-', "_")
        );
        let text = self.environment.get(&variable)?.clone();
        Some((variable, text))
    }

    fn substituted(&self, text: &str, reading: &ValueReader<'_>) -> Result<String> {
        if !text.contains('$') {
            return Ok(text.to_owned());
        }
        let mut out = String::with_capacity(text.len());
        for part in template::parts(text) {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Dollar => out.push('$'),
                TemplatePart::Variable(name) => {
                    let value = self.variable_value(name, reading)?;
                    let spent = reading.spend(1 + value.len());
                    spent.map_err(|why| reading.wrong(name, why))?;
                    out.push_str(&value);
                }
            }
        }
        Ok(out)
    }

    /// What a variable stands for: `group.name`, else the option of the same group, else that of
    /// `DEFAULT`.
    fn variable_value(&self, variable: &str, reading: &ValueReader<'_>) -> Result<String> {
        if reading.depth >= DEPTH {
            let why = "variables stand for each other without end";
            return Err(reading.wrong(variable, why));
        }
        let candidates = match variable.split_once('.') {
            Some((group, name)) => vec![(group, name)],
            None => vec![(reading.group, variable), ("DEFAULT", variable)],
        };
        for (group, name) in candidates {
            if let Some(option) = self.known_option(group, name) {
                let value = self.value_at(option, Some(reading))?;
                return Ok(value.map(|value| value.to_string()).unwrap_or_default());
            }
            // Options that we do not declare are Nova's all the same: what the file says is their
            // value.
            if let Some((text, place)) = self.last(&[(group, name)]) {
                return self.substituted(&text, &reading.below(group, name, place));
            }
        }
        Err(reading.wrong(variable, "there is no such option"))
    }

    fn known_option(&self, group: &str, name: &str) -> Option<&Opt> {
        let group = normalized(group);
        self.known
            .iter()
            .find(|((known, option), _)| *known == group && *option == name)
            .map(|(_, option)| option)
    }
}

/// A value on its way: for errors, and so that it comes to an end.
struct ValueReader<'a> {
    group: &'a str,
    name: &'a str,
    place: ValueLocation,
    depth: usize,
    /// What is left of [`EXPANSION`], shared with whatever it stands for.
    left: Rc<Cell<usize>>,
}

impl<'a> ValueReader<'a> {
    fn of(group: &'a str, name: &'a str, place: ValueLocation) -> Self {
        Self {
            group,
            name,
            place,
            depth: 0,
            left: Rc::new(Cell::new(EXPANSION)),
        }
    }

    /// A value that this one stands for.
    fn below<'b>(&self, group: &'b str, name: &'b str, place: ValueLocation) -> ValueReader<'b> {
        ValueReader {
            group,
            name,
            place,
            depth: self.depth + 1,
            left: Rc::clone(&self.left),
        }
    }

    fn spend(&self, amount: usize) -> std::result::Result<(), &'static str> {
        let left = self.left.get().checked_sub(amount);
        self.left.set(left.unwrap_or(0));
        left.map(drop)
            .ok_or("variables stand for more than a million characters")
    }

    fn wrong(&self, variable: &str, why: &'static str) -> ConfigError {
        ConfigError::Variable {
            place: Box::new(self.place.clone()),
            group: self.group.to_owned(),
            name: self.name.to_owned(),
            variable: variable.to_owned(),
            why,
        }
    }
}

impl ParsedFile {
    fn place(&self, line: usize) -> ValueLocation {
        ValueLocation::Line {
            file: self.path.clone(),
            line,
        }
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> ConfigError {
    if source.kind() == std::io::ErrorKind::NotFound {
        ConfigError::NotFound(path.to_owned())
    } else {
        ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        }
    }
}

fn read_file(path: &Path) -> Result<ParsedFile> {
    let bytes = std::fs::read(path).map_err(|source| unreadable(path, source))?;
    let wrong = |(line, what): (usize, &'static str)| ConfigError::Line {
        path: path.to_owned(),
        line,
        what,
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        wrong((line, "this is no UTF-8"))
    })?;
    parsed(path, &text)
}

fn parsed(path: &Path, text: &str) -> Result<ParsedFile> {
    let wrong = |(line, what): (usize, &'static str)| ConfigError::Line {
        path: path.to_owned(),
        line,
        what,
    };
    let mut values: HashMap<(String, String), Vec<(String, usize)>> = HashMap::new();
    for assignment in parse::parse(text).map_err(wrong)? {
        values
            .entry((normalized(&assignment.section), assignment.key))
            .or_default()
            .push((assignment.value, assignment.line));
    }
    Ok(ParsedFile {
        path: path.to_owned(),
        values,
    })
}

/// `*.conf` of a directory, by name; hidden files are none of them.
fn conf_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let wrong = |source| unreadable(dir, source);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".conf") && !name.starts_with('.') {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
