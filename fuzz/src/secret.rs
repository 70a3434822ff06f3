//! What may not be shown.

/// The part of a text that looks like a login in a URL, if one is there: `://user:password@` within
/// what could be one URL.
pub(crate) fn login_in(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("://") {
        let url = after.split(char::is_whitespace).next().unwrap_or_default();
        if let Some((login, _)) = url.rsplit_once('@')
            && !login.ends_with(":***")
        {
            return Some(url);
        }
        rest = after;
    }
    None
}

/// Panics if a text for people shows a login.
pub(crate) fn assert_no_login(text: &str) {
    assert_eq!(login_in(text), None, "a login is shown: {text}");
}

/// The words of a finding as people see them, blanks and control characters with them.
pub(crate) fn finding_text(finding: &ebbtide_config_check::Finding) -> String {
    let words = [&finding.key, &finding.what, &finding.why, &finding.next];
    words.map(String::as_str).join("\n")
}

/// A word that no input holds by chance.
pub(crate) const MARK: &str = "gEhEiM0815";

/// The URL with [`MARK`] at the end of its password, if it has one that ends where everybody would
/// say so.
pub(crate) fn marked(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let (login, place) = rest.split_once('@')?;
    let special = |c: char| "/?#[,".contains(c) || c.is_whitespace() || c.is_control();
    let plain = |part: &str| !part.contains(special);
    // The name of a file is no secret.
    let server = !scheme.is_empty() && !scheme.to_ascii_lowercase().starts_with("sqlite");
    (server && login.contains(':') && plain(login))
        .then(|| format!("{scheme}://{login}{MARK}@{place}"))
}

/// Panics if a text for people shows the marked password.
pub(crate) fn assert_no_mark(text: &str) {
    assert!(!text.contains(MARK), "a password is shown: {text}");
}
