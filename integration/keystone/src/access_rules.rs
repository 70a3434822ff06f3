//! Access rules of application credentials: which requests a restricted credential may make.

use serde::Deserialize;

/// One rule: a method, a path and a service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AccessRule {
    /// The HTTP method.
    pub method: String,
    /// The path, with `*` or `{name}` for one segment (or a part of it) and `**` for any rest.
    pub path: String,
    /// The service type.
    pub service: String,
}

impl AccessRule {
    /// Whether the rule allows this request to this service.
    #[must_use]
    pub fn allows(&self, service_type: &str, method: &str, path: &str) -> bool {
        self.service == service_type && self.method == method && path_matches(&self.path, path)
    }
}

/// A part of a path pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// This character.
    Literal(char),
    /// One or more characters without a slash.
    Segment,
    /// Any characters.
    Rest,
}

/// `None` if a brace is open or closed alone: such a pattern fits nothing.
fn parts(pattern: &str) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        parts.push(match character {
            '*' if characters.next_if_eq(&'*').is_some() => Part::Rest,
            '*' => Part::Segment,
            '{' => {
                characters.find(|c| *c == '}')?;
                Part::Segment
            }
            '}' => return None,
            other => Part::Literal(other),
        });
    }
    Some(parts)
}

/// Whether a path fits a pattern, the whole of it. The time is the product of both lengths.
#[must_use]
pub fn path_matches(pattern: &str, path: &str) -> bool {
    let Some(parts) = parts(pattern) else {
        return false;
    };
    let path: Vec<char> = path.chars().collect();
    // Where in the path the parts so far may end.
    let mut ends = vec![false; path.len() + 1];
    ends[0] = true;
    for part in parts {
        let mut next = vec![false; path.len() + 1];
        match part {
            Part::Literal(wanted) => {
                for (at, found) in path.iter().enumerate() {
                    next[at + 1] = ends[at] && *found == wanted;
                }
            }
            Part::Segment => {
                for (at, found) in path.iter().enumerate() {
                    next[at + 1] = *found != '/' && (ends[at] || next[at]);
                }
            }
            Part::Rest => {
                let mut reached = false;
                for at in 0..=path.len() {
                    reached |= ends[at];
                    next[at] = reached;
                }
            }
        }
        ends = next;
    }
    ends[path.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_fit_as_in_keystonemiddleware() {
        for (pattern, path) in [
            ("/v1/servers", "/v1/servers"),
            ("/v1/servers/*", "/v1/servers/a"),
            ("/v1/servers/{server_id}", "/v1/servers/a"),
            ("/v1/*/{id}/notes", "/v1/servers/a/notes"),
            ("/v1/**", "/v1/servers/a/notes"),
            ("/v1/**", "/v1/"),
            ("/v1/a*z", "/v1/abcz"),
            ("/v1/***", "/v1/a/b"),
        ] {
            assert!(path_matches(pattern, path), "{pattern} and {path}");
        }
    }

    #[test]
    fn what_is_more_or_less_than_the_pattern_does_not_fit() {
        for (pattern, path) in [
            ("/v1/servers", "/v1/servers/"),
            ("/v1/servers", "/v1/server"),
            ("/v1/servers/*", "/v1/servers/"),
            ("/v1/servers/*", "/v1/servers/a/b"),
            ("/v1/*/notes", "/v1/a/b/notes"),
            ("/v1/**", "/v2/servers"),
            ("", "/"),
            ("/v1.0", "/v1x0"),
            ("/v1/{id", "/v1/{id"),
            ("/v1/id}", "/v1/id}"),
        ] {
            assert!(!path_matches(pattern, path), "{pattern} and {path}");
        }
    }

    #[test]
    fn a_rule_needs_service_method_and_path() {
        let rule = AccessRule {
            method: "GET".to_owned(),
            path: "/v1/**".to_owned(),
            service: "preemption".to_owned(),
        };
        assert!(rule.allows("preemption", "GET", "/v1/servers"));
        assert!(!rule.allows("compute", "GET", "/v1/servers"));
        assert!(!rule.allows("preemption", "POST", "/v1/servers"));
        assert!(!rule.allows("preemption", "GET", "/v2/servers"));
    }

    proptest! {
        #[test]
        fn a_pattern_without_wildcards_fits_itself_alone(
            a in "/[a-z./]{0,12}", b in "/[a-z./]{0,12}"
        ) {
            prop_assert!(path_matches(&a, &a));
            prop_assert_eq!(path_matches(&a, &b), a == b);
        }

        #[test]
        fn no_pattern_makes_the_matcher_fail(pattern in ".{0,40}", path in ".{0,40}") {
            let _ = path_matches(&pattern, &path);
            prop_assert!(path_matches("**", &path));
        }
    }
}
