//! Lists of hosts as Slurm writes them: `c[1-3,7],s1`, `rack[0-1]n[01-16]`.

use crate::error::BurstError;

/// The most hosts that a list may stand for: more than Slurm's default MaxNodeCount is a typing
/// error, and a short text must not fill the memory.
pub const MOST_HOSTS: usize = 65_536;

/// The hosts of a list, in its order. An empty list has none.
///
/// # Errors
/// [`BurstError::Hosts`] for brackets that do not close, ranges that run backwards and more than
/// [`MOST_HOSTS`] hosts.
pub fn hosts(list: &str) -> Result<Vec<String>, BurstError> {
    let refuse = |problem: &str| BurstError::Hosts {
        text: list.chars().take(80).collect(),
        problem: problem.to_owned(),
    };
    let mut all = Vec::new();
    for part in split(list).map_err(refuse)? {
        let mut names = vec![String::new()];
        let mut rest = part;
        while let Some((before, behind)) = rest.split_once('[') {
            if before.contains(']') {
                return Err(refuse("a bracket closes that was not opened"));
            }
            let (inside, after) = behind
                .split_once(']')
                .ok_or_else(|| refuse("a bracket does not close"))?;
            let numbers = numbers(inside).map_err(refuse)?;
            if names.len().saturating_mul(numbers.len()) > MOST_HOSTS {
                return Err(refuse("it stands for more than 65536 hosts"));
            }
            names = names
                .iter()
                .flat_map(|name| numbers.iter().map(move |n| format!("{name}{before}{n}")))
                .collect();
            rest = after;
        }
        if rest.contains(']') {
            return Err(refuse("a bracket closes that was not opened"));
        }
        for name in names {
            let name = name + rest;
            if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(refuse("a name has blanks in it"));
            }
            all.push(name);
        }
        if all.len() > MOST_HOSTS {
            return Err(refuse("it stands for more than 65536 hosts"));
        }
    }
    Ok(all)
}

/// The parts between commas that are not in brackets.
fn split(list: &str) -> Result<Vec<&str>, &'static str> {
    let mut parts = Vec::new();
    let (mut from, mut inside) = (0, false);
    if list.trim().is_empty() {
        return Ok(parts);
    }
    let list = list.trim();
    for (at, c) in list.char_indices() {
        match c {
            '[' if inside => return Err("a bracket opens inside of another"),
            '[' => inside = true,
            ']' => inside = false,
            ',' if !inside => {
                parts.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[from..]);
    if parts.iter().any(|part| part.is_empty()) {
        return Err("a name is missing between two commas");
    }
    Ok(parts)
}

/// `1-3,07` as texts, with the leading zeros of the first number of a range.
fn numbers(inside: &str) -> Result<Vec<String>, &'static str> {
    const WRONG: &str = "in brackets there are numbers and ranges, as in [1-3,7]";
    let digits = |text: &str| {
        let all = !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
        all.then(|| text.parse::<u32>().ok()).flatten()
    };
    let mut all = Vec::new();
    for part in inside.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (Some(first), Some(last)) = (digits(from), digits(to)) else {
            return Err(WRONG);
        };
        if first > last {
            return Err("a range runs backwards");
        }
        if (last - first) as usize + all.len() >= MOST_HOSTS {
            return Err("it stands for more than 65536 hosts");
        }
        let width = from.len();
        all.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Ok(all)
}
