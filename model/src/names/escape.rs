//! Characters of a text that do not show themselves, and how each kind of output shows them.
//!
//! A name with one of them can look like another name, or turn a line around. A region refuses them
//! in the names that it gives out ([`super::check_name`]); names from elsewhere (Nova, traces) are
//! shown with escapes (`\u{202e}`), by the functions here and nothing else.

use std::borrow::Cow;
use std::fmt::Write as _;
use unicode_properties::{GeneralCategory, UnicodeEmoji, UnicodeGeneralCategory};

const JOINER: char = '\u{200d}';
const EMOJI_STYLE: char = '\u{fe0f}';

/// The characters of a text that do not show themselves, with their places: controls, directions,
/// zero width, line separators, tags, private and unassigned ones. A joiner or a style between the
/// parts of an emoji is not among them.
pub fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before: Option<char> = None;
    text.char_indices().filter(move |&(at, c)| {
        let last = before.replace(c);
        if !unseen(c) {
            return false;
        }
        let next = text
            .get(at + c.len_utf8()..)
            .and_then(|rest| rest.chars().next());
        let of_emoji = match c {
            EMOJI_STYLE => last.is_some_and(UnicodeEmoji::is_emoji_char),
            JOINER => {
                last.is_some_and(|c| c == EMOJI_STYLE || pictured(c)) && next.is_some_and(pictured)
            }
            _ => false,
        };
        !of_emoji
    })
}

/// The text as one line of output shows it: with escapes for what is hidden.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false, |out, c| out.extend(c.escape_default()))
}

/// The same for a text of several lines: line feeds and tabs stay. Whole SVG and HTML documents,
/// too: what is escaped has no meaning in either.
#[must_use]
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| matches!(c, '\n' | '\t'),
        |out, c| out.extend(c.escape_default()),
    )
}

/// A text in a cell of a CSV file: a spreadsheet takes one that begins like a formula for one, so
/// that such a text gets a `'` before it.
#[must_use]
pub fn shown_cell(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    match formula {
        true => format!("'{}", shown(text)).into(),
        false => shown(text),
    }
}

/// A JSON document with JSON's own escapes for what is hidden: a parser reads the same values.
#[must_use]
pub fn shown_json(document: &str) -> Cow<'_, str> {
    escaped(
        document,
        |c| matches!(c, '\n' | '\t' | '\r'),
        |out, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

fn escaped(
    text: &str,
    stays: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for (at, c) in hidden(text).filter(|&(_, c)| !stays(c)) {
        out.push_str(text.get(done..at).unwrap_or_default());
        escape(&mut out, c);
        done = at + c.len_utf8();
    }
    if done == 0 {
        return text.into();
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out.into()
}

/// An emoji that may be a part of a joined one; digits are emoji characters, too, but never that.
fn pictured(c: char) -> bool {
    !c.is_ascii() && c.is_emoji_char() && !unseen(c)
}

fn unseen(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    // Letters and marks that have no shape, and the blank of Braille: no category tells them.
    let shapeless = matches!(
        c,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    shapeless
        || matches!(
            c.general_category(),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::LineSeparator
                | GeneralCategory::ParagraphSeparator
                | GeneralCategory::PrivateUse
                | GeneralCategory::Surrogate
                | GeneralCategory::Unassigned
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Those that attacks use, named one by one and not by their categories.
    fn bad(c: char) -> bool {
        matches!(
            c,
            '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{61c}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
    }

    fn texts() -> impl Strategy<Value = String> {
        let some = prop_oneof![
            any::<char>(),
            prop::char::range('\0', '\u{ff}'),
            prop::char::range('\u{2000}', '\u{206f}'),
            prop::char::range('\u{e0000}', '\u{e0080}'),
            prop::sample::select(vec!['\u{61c}', '\u{feff}', '=', '-', '<', '\u{1f468}']),
        ];
        prop::collection::vec(some, 0..20).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_shown_in_any_output(text in texts()) {
            // A joiner within an emoji is part of one picture.
            let clean = |shown: &str| !shown.chars().any(|c| bad(c) && c != JOINER)
                && hidden(shown).next().is_none();
            prop_assert!(clean(&shown(&text)), "{:?}", text);
            let lines = shown_lines(&text).replace(['\n', '\t'], " ");
            prop_assert!(clean(&lines), "{:?}", text);
            let cell = shown_cell(&text);
            let formula = cell.starts_with(['=', '+', '-', '@']);
            prop_assert!(clean(&cell) && !formula, "{:?}", text);
            let json = serde_json::to_string(&text).unwrap();
            let json = shown_json(&json);
            prop_assert!(clean(&json), "{:?}", text);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn a_name_that_is_taken_is_shown_as_it_is(text in texts()) {
            if super::super::check_name("server", &text).is_ok() {
                prop_assert_eq!(shown(&text), text.as_str());
            }
        }
    }

    #[test]
    fn an_escape_tells_the_character() {
        assert_eq!(shown("a\u{202e}b\n\u{e0041}"), "a\\u{202e}b\\n\\u{e0041}");
        assert_eq!(shown("x\u{200d}y"), "x\\u{200d}y");
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        assert_eq!(shown(family), family);
        assert_eq!(shown_cell("=1+1"), "'=1+1");
        assert_eq!(shown_cell("\t=1"), "'\\t=1");
        assert_eq!(shown_json("\"\u{e0041}\""), "\"\\udb40\\udc41\"");
    }
}
