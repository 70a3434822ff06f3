//! The properties of a request that a weigher or a filter gets, by name.

use ebbtide_weigher_api::RequestView;
use std::borrow::Cow;

/// Names and values: `flavor`, `image_id`, `group_policy`, `extra_spec:KEY`, `scheduler_hint:KEY`.
/// Unknown ones are omitted.
#[must_use]
pub fn properties<'a>(request: &RequestView<'a>) -> Vec<(Cow<'a, str>, &'a str)> {
    let details = &request.details;
    let flavor = Some(details.flavor).filter(|flavor| !flavor.is_empty());
    let policy = request.group_policy.map(|policy| policy.as_str());
    let single = [
        ("flavor", flavor),
        ("image_id", details.image_id),
        ("group_policy", policy),
    ];
    let known = single
        .into_iter()
        .filter_map(|(name, value)| Some((Cow::Borrowed(name), value?)));
    let specs = details
        .extra_specs
        .iter()
        .map(|(key, value)| (Cow::Owned(format!("extra_spec:{key}")), *value));
    let hints = details
        .scheduler_hints
        .iter()
        .map(|(key, values)| (Cow::Owned(format!("scheduler_hint:{key}")), values.as_str()));
    known.chain(specs).chain(hints).collect()
}
