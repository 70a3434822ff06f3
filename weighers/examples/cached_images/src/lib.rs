//! A weigher for Ebbtide: prefers hosts that have the image already, so that a server starts
//! without a download.
//!
//! What it works out is here, where `cargo test` reaches it natively; `component.rs` is what
//! Ebbtide calls.

#[cfg(target_family = "wasm")]
mod component;

/// What the operator sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The key in the aggregates' metadata under which the ids of cached images are.
    pub metadata: String,
    /// The extra spec that names a flavor's image, where the request itself does not.
    pub extra_spec: Option<String>,
}

impl Settings {
    /// Reads them; says what is wrong.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut settings = Self {
            metadata: "cached_images".to_owned(),
            extra_spec: None,
        };
        for (key, value) in pairs {
            match (key, value) {
                ("metadata", "") => {
                    return Err("metadata = \"\": it has to be a key of aggregates' metadata, for example cached_images".to_owned());
                }
                ("extra_spec", "") => {
                    return Err("extra_spec = \"\": it has to be the key of an extra spec, for example image".to_owned());
                }
                ("metadata", _) => settings.metadata = value.to_owned(),
                ("extra_spec", _) => settings.extra_spec = Some(value.to_owned()),
                _ => {
                    return Err(format!(
                        "{key:?} is not a setting of it; there are metadata and extra_spec"
                    ));
                }
            }
        }
        Ok(settings)
    }
}

/// The image of a request, by its properties.
pub fn image<'a>(
    settings: &Settings,
    mut property: impl FnMut(&str) -> Option<&'a str>,
) -> Option<&'a str> {
    let of_flavor = settings
        .extra_spec
        .as_ref()
        .map(|key| format!("extra_spec:{key}"));
    property("image_id").or_else(|| property(&of_flavor?))
}

/// 1 if the list (ids with commas between) has the image, else 0. Without an image, for example of
/// a server that boots from a volume, 0.
pub fn score(image_id: Option<&str>, cached: &str) -> f64 {
    let is_there = |image| {
        cached
            .split(',')
            .any(|id| id.trim().eq_ignore_ascii_case(image))
    };
    match image_id {
        Some(image) if !image.is_empty() && is_there(image) => 1.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "0f9e8d7c-6b5a-4938-8716-253443526170";

    #[test]
    fn a_host_that_has_the_image_is_better_than_one_that_has_not() {
        let other = "aaaaaaaa-0000-4000-8000-000000000000";
        assert_eq!(score(Some(IMAGE), IMAGE), 1.0);
        assert_eq!(
            score(Some(IMAGE), &format!("{other}, {}", IMAGE.to_uppercase())),
            1.0
        );
        assert_eq!(score(Some(IMAGE), other), 0.0);
    }

    #[test]
    fn the_image_of_the_request_counts_before_that_of_its_flavor() {
        let settings = Settings::read([("extra_spec", "image")]).unwrap();
        let both = |key: &str| Some(if key == "image_id" { "own" } else { "flavor's" });
        assert_eq!(image(&settings, both), Some("own"));
        let of_flavor = |key: &str| (key == "extra_spec:image").then_some("flavor's");
        assert_eq!(image(&settings, of_flavor), Some("flavor's"));
        assert_eq!(image(&Settings::read([]).unwrap(), of_flavor), None);
    }

    #[test]
    fn part_of_an_id_is_not_that_id() {
        assert_eq!(score(Some(IMAGE), &IMAGE[..8]), 0.0);
    }

    #[test]
    fn where_nothing_is_known_all_hosts_are_alike() {
        assert_eq!(score(Some(IMAGE), ""), 0.0);
        assert_eq!(score(None, IMAGE), 0.0);
        assert_eq!(score(Some(""), ""), 0.0);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let read = |key, value| Settings::read([(key, value)]);
        assert_eq!(
            read("metadata", "images").map(|settings| settings.metadata),
            Ok("images".to_owned())
        );
        assert!(read("metadata", "").is_err() && read("key", "images").is_err());
    }
}
