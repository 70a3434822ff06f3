//! Which known name was probably meant.

/// Further away than this, it is another word.
const FAR: f64 = 0.72;
/// More than a few are no help.
const MOST: usize = 3;

/// The nearest of the known names, best first; none if none is near.
pub(crate) fn names<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut near: Vec<(f64, &str)> = known
        .filter(|name| !name.is_empty())
        .map(|name| (strsim::normalized_damerau_levenshtein(wanted, name), name))
        .filter(|(likeness, _)| *likeness >= FAR)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.dedup_by(|a, b| a.1 == b.1);
    let names = near.into_iter().take(MOST);
    names.map(|(_, name)| name.to_owned()).collect()
}

/// The nearest one.
pub(crate) fn name<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    names(wanted, known).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_what_was_meant_and_another_word_finds_nothing() {
        let known = ["notice_attempts", "max_attempts", "policy"];
        let near = |wanted| name(wanted, known.into_iter());
        assert_eq!(near("notice_atempts").as_deref(), Some("notice_attempts"));
        assert_eq!(near("polciy").as_deref(), Some("policy"));
        assert_eq!(near("hypervisor"), None);
    }
}
