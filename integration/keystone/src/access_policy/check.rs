//! The language of policy files, as oslo.policy reads it (`oslo_policy/_parser.py`): checks joined
//! by `and`, `or`, `not` and parentheses. `not` binds strongest, `or` weakest.

use crate::token::{Scope, ValidatedToken};
use std::collections::BTreeMap;

/// How deep `not` and parentheses may nest.
const DEPTH: usize = 32;

/// A check that a token passes or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    /// `@` or an empty text: every token.
    Always,
    /// `!`: no token.
    Never,
    /// `role:NAME`, compared without case.
    Role(String),
    /// `rule:NAME`: another rule of the table.
    Rule(String),
    /// `user_id:ID`.
    User(String),
    /// `project_id:ID`.
    Project(String),
    /// `system_scope:all`.
    System,
    Not(Box<Check>),
    All(Vec<Check>),
    Any(Vec<Check>),
}

impl Check {
    /// Reads a check.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let tokens = words(text);
        if tokens.is_empty() {
            return Ok(Self::Always);
        }
        let mut parser = Parser {
            words: &tokens,
            depth: 0,
        };
        let check = parser.any()?;
        match parser.words {
            [] => Ok(check),
            [word, ..] => Err(format!("{word:?} is not expected there")),
        }
    }

    /// Whether a token passes. Rules that are missing or go round in a circle do not occur:
    /// [`super::AccessPolicy`] refuses them when it is made.
    pub(super) fn passes(&self, token: &ValidatedToken, rules: &BTreeMap<String, Self>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Role(name) => token.has_role(name),
            // As in Nova, the project of an admin does not matter, unless Keystone has an admin
            // project and this is not it.
            Self::Rule(name) if name == super::ADMIN && !token.is_admin_project => false,
            Self::Rule(name) => rules
                .get(name)
                .is_some_and(|rule| rule.passes(token, rules)),
            Self::User(id) => token.user.id == *id,
            Self::Project(id) => token.project().is_some_and(|project| project.id == *id),
            Self::System => matches!(token.scope, Scope::System),
            Self::Not(check) => !check.passes(token, rules),
            Self::All(checks) => checks.iter().all(|check| check.passes(token, rules)),
            Self::Any(checks) => checks.iter().any(|check| check.passes(token, rules)),
        }
    }

    /// The rules that it names.
    pub(super) fn rules(&self) -> Vec<&str> {
        match self {
            Self::Rule(name) => vec![name],
            Self::Not(check) => check.rules(),
            Self::All(checks) | Self::Any(checks) => checks.iter().flat_map(Self::rules).collect(),
            _ => Vec::new(),
        }
    }
}

/// Words and parentheses. A parenthesis may touch the word beside it.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for mut word in text.split_whitespace() {
        while let Some(rest) = word.strip_prefix('(') {
            found.push("(");
            word = rest;
        }
        let inner = word.trim_end_matches(')');
        if !inner.is_empty() {
            found.push(inner);
        }
        found.extend(std::iter::repeat_n(")", word.len() - inner.len()));
    }
    found
}

struct Parser<'a> {
    words: &'a [&'a str],
    depth: usize,
}

impl Parser<'_> {
    fn takes(&mut self, keyword: &str) -> bool {
        match self.words {
            [word, rest @ ..] if word.eq_ignore_ascii_case(keyword) => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }

    fn any(&mut self) -> Result<Check, String> {
        let mut checks = vec![self.all()?];
        while self.takes("or") {
            checks.push(self.all()?);
        }
        Ok(single(checks, Check::Any))
    }

    fn all(&mut self) -> Result<Check, String> {
        let mut checks = vec![self.not()?];
        while self.takes("and") {
            checks.push(self.not()?);
        }
        Ok(single(checks, Check::All))
    }

    fn not(&mut self) -> Result<Check, String> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("it nests deeper than {DEPTH}"));
        }
        let check = if self.takes("not") {
            Check::Not(Box::new(self.not()?))
        } else if self.takes("(") {
            let inner = self.any()?;
            if !self.takes(")") {
                return Err("a parenthesis is not closed".to_owned());
            }
            inner
        } else {
            let [word, rest @ ..] = self.words else {
                return Err("a check is missing at its end".to_owned());
            };
            self.words = rest;
            one(word)?
        };
        self.depth -= 1;
        Ok(check)
    }
}

fn single(mut checks: Vec<Check>, many: fn(Vec<Check>) -> Check) -> Check {
    match checks.len() {
        1 => checks.remove(0),
        _ => many(checks),
    }
}

/// One check: `KIND:VALUE`, `@` or `!`.
fn one(word: &str) -> Result<Check, String> {
    match word {
        "@" => return Ok(Check::Always),
        "!" => return Ok(Check::Never),
        _ => {}
    }
    let unknown = || {
        format!(
            "{word:?} is not a check; possible: role:NAME, rule:NAME, user_id:ID, project_id:ID, \
             system_scope:all, @, !, joined by and, or, not and parentheses"
        )
    };
    let (kind, value) = word.split_once(':').ok_or_else(unknown)?;
    if value.is_empty() {
        return Err(format!("{word:?} has no value"));
    }
    // What belongs to another project is never shown to a project's token, with any policy.
    if value.contains("%(") {
        return Err(format!(
            "{word:?}: targets are not known here; a token of a project sees its own project in \
             any case, so leave this check out"
        ));
    }
    let value = value.to_owned();
    match kind {
        "role" => Ok(Check::Role(value)),
        "rule" => Ok(Check::Rule(value)),
        "user_id" => Ok(Check::User(value)),
        "project_id" => Ok(Check::Project(value)),
        "system_scope" if value == "all" => Ok(Check::System),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn role(name: &str) -> Check {
        Check::Role(name.to_owned())
    }

    #[test]
    fn and_binds_stronger_than_or_and_not_strongest() {
        let read = Check::parse("role:a or not role:b and role:c").unwrap();
        let not_b = Check::Not(Box::new(role("b")));
        assert_eq!(
            read,
            Check::Any(vec![role("a"), Check::All(vec![not_b, role("c")])])
        );
        assert_eq!(
            Check::parse("(role:a or role:b) AND role:c").unwrap(),
            Check::All(vec![Check::Any(vec![role("a"), role("b")]), role("c")])
        );
        assert_eq!(Check::parse("").unwrap(), Check::Always);
        assert_eq!(Check::parse("((@))").unwrap(), Check::Always);
    }

    #[test]
    fn what_is_no_check_is_an_error_that_says_why() {
        for (text, part) in [
            ("role:a or", "missing"),
            ("(role:a", "not closed"),
            ("role:a role:b", "not expected"),
            ("role:a)", "not expected"),
            ("http://policy/check", "is not a check"),
            ("admin", "is not a check"),
            ("role:", "no value"),
            ("project_id:%(project_id)s", "leave this check out"),
            ("system_scope:some", "is not a check"),
        ] {
            let problem = Check::parse(text).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
        assert!(Check::parse(&"not ".repeat(DEPTH + 1)).is_err());
        assert!(Check::parse(&"(".repeat(100_000)).is_err());
    }

    fn shown(check: &Check) -> String {
        let joined = |checks: &[Check], word: &str| {
            let parts: Vec<_> = checks.iter().map(|c| format!("({})", shown(c))).collect();
            parts.join(word)
        };
        match check {
            Check::Always => "@".to_owned(),
            Check::Never => "!".to_owned(),
            Check::Role(name) => format!("role:{name}"),
            Check::Rule(name) => format!("rule:{name}"),
            Check::User(id) => format!("user_id:{id}"),
            Check::Project(id) => format!("project_id:{id}"),
            Check::System => "system_scope:all".to_owned(),
            Check::Not(check) => format!("not ({})", shown(check)),
            Check::All(checks) => joined(checks, " and "),
            Check::Any(checks) => joined(checks, " or "),
        }
    }

    fn checks() -> impl Strategy<Value = Check> {
        let leaf = prop_oneof![
            Just(Check::Always),
            Just(Check::Never),
            Just(Check::System),
            "[a-z]{1,8}".prop_map(Check::Role),
            "[a-z]{1,8}".prop_map(Check::Rule),
            "[a-z0-9]{1,8}".prop_map(Check::Project),
            "[a-z0-9]{1,8}".prop_map(Check::User),
        ];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|check| Check::Not(Box::new(check))),
                prop::collection::vec(inner.clone(), 2..4).prop_map(Check::All),
                prop::collection::vec(inner, 2..4).prop_map(Check::Any),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_check_that_is_written_down_reads_as_itself(check in checks()) {
            prop_assert_eq!(Check::parse(&shown(&check)).unwrap(), check);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[a-z:()@! %]{0,60}") {
            let _ = Check::parse(&text);
        }
    }
}
