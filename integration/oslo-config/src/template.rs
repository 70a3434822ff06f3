//! `$name`, `${name}`, `$group.name` in values (`ConfigOpts._substitute`, Python's
//! `string.Template`).

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplatePart<'a> {
    /// Text as it stands.
    Text(&'a str),
    /// A dollar sign.
    Dollar,
    /// A variable.
    Variable(&'a str),
}

/// Length of the name at the beginning: a letter or `_`, then letters, digits, dots and `_`, all
/// ASCII. Python's case-insensitive flag also accepts two letters outside ASCII (the Kelvin sign
/// and the long s); this function does not.
fn name_length(text: &str) -> usize {
    let first = |char: char| char.is_ascii_alphabetic() || char == '_';
    if !text.starts_with(first) {
        return 0;
    }
    text.find(|char: char| !(first(char) || char.is_ascii_digit() || char == '.'))
        .unwrap_or(text.len())
}

/// Takes a value apart. A dollar sign that begins nothing stays what it is; `\$` is as good as
/// `$$`.
pub(crate) fn parts(value: &str) -> Vec<TemplatePart<'_>> {
    let mut parts = Vec::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        if let Some(before) = before.strip_suffix('\\') {
            // `\$` becomes `$$` first of all, and then what follows is looked at.
            parts.extend([TemplatePart::Text(before), TemplatePart::Dollar]);
            rest = after;
            continue;
        }
        parts.push(TemplatePart::Text(before));
        if let Some(after) = after.strip_prefix('$') {
            parts.push(TemplatePart::Dollar);
            rest = after;
        } else if let Some((name, after)) = braced(after) {
            parts.push(TemplatePart::Variable(name));
            rest = after;
        } else {
            let length = name_length(after);
            parts.push(if length == 0 {
                TemplatePart::Dollar
            } else {
                TemplatePart::Variable(&after[..length])
            });
            rest = &after[length..];
        }
    }
    parts.push(TemplatePart::Text(rest));
    parts
}

fn braced(after: &str) -> Option<(&str, &str)> {
    let inner = after.strip_prefix('{')?;
    let length = name_length(inner);
    let after = inner[length..].strip_prefix('}')?;
    (length > 0).then_some((&inner[..length], after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_taken_apart_as_pythons_templates_do() {
        let show = |value: &str| -> String {
            parts(value)
                .iter()
                .map(|part| match part {
                    TemplatePart::Text(text) => (*text).to_owned(),
                    TemplatePart::Dollar => "$".to_owned(),
                    TemplatePart::Variable(name) => format!("<{name}>"),
                })
                .collect()
        };
        for (value, shown) in [
            ("a$b c", "a<b> c"),
            ("${b}c", "<b>c"),
            ("$a.b-c", "<a.b>-c"),
            ("$$a $1 ${ ${1} $", "$a $1 ${ ${1} $"),
            (r"\$a \$$b", "$a $<b>"),
            ("${a", "${a"),
        ] {
            assert_eq!(show(value), shown, "{value}");
        }
    }
}
