//! Keys in words: one for a terminal, all of them as a page.

use crate::registry::{self, ConfigKind, Key, KeyInFile};
use std::fmt::Write as _;

const HEAD: &str = "\
# Configuration

<!-- Written by `ebbtide-manage config explain --output markdown`; a test holds it against that. A key is declared beside the field that holds its value (docs/development/checklists/key.md). -->

Every key of the scheduler's and the agent's TOML and every option of nova.conf that Ebbtide reads. `ebbtide-manage config explain KEY` shows one,
`ebbtide-manage config check FILE` judges a file: what the program would refuse, and what is legal and probably not meant ([codes](errors.md#configuration-files)).

Files come first, then the environment, then options of the command line; the later wins. Keys of a list (`[]`) or of a table of your own (`*`) have no
environment variable. *Applies* says when a changed value counts: at the next start, or when the program gets SIGHUP.
";

fn head_of(kind: ConfigKind) -> &'static str {
    match kind {
        ConfigKind::Scheduler => {
            "`ebbtide-scheduler --config FILE`. Unknown keys are errors. `region.notice_attempts` is `EBBTIDE__REGION__NOTICE_ATTEMPTS` in the environment."
        }
        ConfigKind::Agent => {
            "`ebbtide-agent --config FILE`. Unknown keys are errors. `bus.prefix` is `EBBTIDE_AGENT__BUS__PREFIX` in the environment."
        }
        ConfigKind::Nova => {
            "`ebbtide-scheduler --config-file FILE`, as oslo.config reads it. What is not here Ebbtide does not read; oslo.config ignores options that do not \
             exist. `[ebbtide] room_timeout` is `OS_EBBTIDE__ROOM_TIMEOUT` in the environment. *never*: it is understood and has no effect."
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

fn code(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("`{}`", escaped(text))
    }
}

fn kind_of(key: &Key) -> String {
    let mut text = match &key.ty {
        registry::Type::Words(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    };
    if key.range.is_some() {
        let _ = write!(text, ", {}", key.range_shown());
    }
    if !key.unit.is_empty() {
        let _ = write!(text, ", {}", key.unit);
    }
    text
}

/// All keys as a page of Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    for kind in ConfigKind::ALL {
        let _ = write!(page, "\n## {}\n\n{}\n", kind.title(), head_of(kind));
        let mut section: Option<&str> = None;
        for key in sorted(kind) {
            if section != Some(key.section()) {
                section = Some(key.section());
                let name = if key.section().is_empty() {
                    "Top of the file".to_owned()
                } else {
                    format!("`[{}]`", key.section())
                };
                let _ = write!(
                    page,
                    "\n### {name}\n\n| key | what it takes | default | applies | what it does |\n|---|---|---|---|---|\n"
                );
            }
            let default = if key.required {
                "required".to_owned()
            } else {
                code(&key.default)
            };
            let _ = writeln!(
                page,
                "| `{}` | {} | {default} | {} | {} Example: {} |",
                key.path,
                escaped(&kind_of(key)),
                key.applies.as_str(),
                escaped(&key.what),
                code(&key.example)
            );
        }
    }
    page
}

/// Sections together, in the order in which they come first.
fn sorted(kind: ConfigKind) -> Vec<&'static Key> {
    let keys = registry::keys(kind);
    let mut sections: Vec<&str> = Vec::new();
    for key in keys {
        if !sections.contains(&key.section()) {
            sections.push(key.section());
        }
    }
    let of = |section: &&str| {
        let section = *section;
        keys.iter()
            .filter(move |key| key.section() == section)
            .collect::<Vec<_>>()
    };
    sections.iter().flat_map(of).collect()
}

/// One key: pairs of what and its answer, those without an answer left out.
#[must_use]
pub fn key_as_text(kind: ConfigKind, key: &Key) -> Vec<(&'static str, String)> {
    let default = match (key.required, key.default.as_str()) {
        (true, _) => "none: it has to be there".to_owned(),
        (false, "") => "not set".to_owned(),
        (false, default) => default.to_owned(),
    };
    let example = match kind {
        ConfigKind::Nova => {
            let (section, option) = key.path.split_once('.').unwrap_or(("", &key.path));
            format!("[{section}]\n{option} = {}", key.example)
        }
        _ => key.example_in_file(),
    };
    let applies = match key.applies {
        registry::Applies::Start => "at the next start",
        registry::Applies::Sighup => "on SIGHUP, or at the next start",
        registry::Applies::Never => "never: it has no effect on Ebbtide",
    };
    let pairs = [
        ("key", key.shown(kind)),
        ("file", kind.to_string()),
        ("what", key.what.clone()),
        ("type", key.ty.to_string()),
        ("unit", key.unit.to_owned()),
        ("range", key.range_shown()),
        ("default", default),
        ("applies", applies.to_owned()),
        ("environment", key.variable(kind).unwrap_or_default()),
        ("example", example),
    ];
    pairs
        .into_iter()
        .filter(|(_, answer)| !answer.is_empty())
        .collect()
}
