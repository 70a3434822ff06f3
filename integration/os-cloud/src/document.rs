//! What stands in clouds.yaml, secure.yaml and clouds-public.yaml.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// Text by key. Keys have underscores, as openstacksdk makes them; empty values are left out.
pub(crate) type Texts = BTreeMap<String, String>;

/// A file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Document {
    #[serde(default)]
    pub(crate) clouds: Option<BTreeMap<String, Option<CloudEntry>>>,
    #[serde(default, rename = "public-clouds")]
    pub(crate) public_clouds: Option<BTreeMap<String, Option<CloudEntry>>>,
}

/// A cloud, or the values of a region of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CloudEntry {
    /// What stands beside `auth`.
    pub(crate) top: Texts,
    /// What stands in `auth`.
    pub(crate) auth: Texts,
    /// Its regions; `None` if there is no such key.
    pub(crate) regions: Option<Vec<Region>>,
}

/// A region of a cloud with what differs there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) name: String,
    pub(crate) values: CloudEntry,
}

/// The keys beside `auth` and `regions` that are read; the rest is for other programs. Those of
/// [`AUTH_KEYS`] may stand here, too.
const TOP_KEYS: &[&str] = &[
    "profile",
    "cloud",
    "auth_type",
    "auth_plugin",
    "verify",
    "insecure",
    "cacert",
    "cert",
    "key",
    "api_timeout",
    "endpoint_type",
    "endpoint",
    "region_name",
    "interface",
];

/// Options of the methods of authentication.
pub(crate) const AUTH_KEYS: &[&str] = &[
    "auth_url",
    "username",
    "user_name",
    "user_id",
    "password",
    "user_domain_id",
    "user_domain_name",
    "project_id",
    "project_name",
    "tenant_id",
    "tenant_name",
    "project_domain_id",
    "project_domain_name",
    "default_domain_id",
    "default_domain_name",
    "default_domain",
    "domain_id",
    "domain_name",
    "system_scope",
    "application_credential_id",
    "application_credential_name",
    "application_credential_secret",
    "token",
    "auth_token",
];

/// Services besides our own of which a cloud may say where they are.
const OTHER_SERVICES: &[&str] = &["compute_", "image_", "network_"];

/// What is read of them. Other keys, such as `compute_api_version`, need not be text.
const OTHER_KEYS: &[&str] = &[
    "endpoint",
    "endpoint_override",
    "endpoint_type",
    "interface",
    "region_name",
    "service_name",
];

/// Whether a key beside `auth` is read as text.
pub(crate) fn is_text_key(key: &str) -> bool {
    let of_other = |service: &&str| {
        let rest = key.strip_prefix(*service);
        rest.is_some_and(|rest| OTHER_KEYS.contains(&rest))
    };
    TOP_KEYS.contains(&key)
        || AUTH_KEYS.contains(&key)
        || key.starts_with("preemption_")
        || OTHER_SERVICES.iter().any(of_other)
}

fn normalised(key: &str) -> String {
    key.replace('-', "_")
}

/// A list, or one text of several parts between commas.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamesForm)
    }
}

struct NamesForm;

impl<'de> Visitor<'de> for NamesForm {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name or a list of names, in quotes if they look like numbers")
    }

    fn visit_str<E>(self, text: &str) -> Result<Names, E> {
        let names = text.split(',').map(str::trim).filter(|n| !n.is_empty());
        Ok(Names(names.map(str::to_owned).collect()))
    }

    fn visit_unit<E>(self) -> Result<Names, E> {
        Ok(Names(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Names, A::Error> {
        let mut names = Vec::new();
        while let Some(name) = items.next_element::<String>()? {
            names.push(name);
        }
        Ok(Names(names))
    }
}

impl<'de> Deserialize<'de> for Region {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RegionForm)
    }
}

struct RegionForm;

impl<'de> Visitor<'de> for RegionForm {
    type Value = Region;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a region, or its name and values")
    }

    fn visit_str<E>(self, name: &str) -> Result<Region, E> {
        let values = CloudEntry::default();
        Ok(Region {
            name: name.to_owned(),
            values,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Region, A::Error> {
        let mut region = Region::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "name" => region.name = map.next_value()?,
                "values" => {
                    region.values = map.next_value::<Option<CloudEntry>>()?.unwrap_or_default();
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if region.name.is_empty() {
            return Err(A::Error::missing_field("name"));
        }
        Ok(region)
    }
}

impl<'de> Deserialize<'de> for CloudEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entry)
    }
}

struct Entry;

impl<'de> Visitor<'de> for Entry {
    type Value = CloudEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings of a cloud")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CloudEntry, A::Error> {
        let mut entry = CloudEntry::default();
        while let Some(key) = map.next_key::<String>()? {
            // Values are read as text, because the type decides how YAML reads them: a project id
            // of digits with one e would become a number.
            match normalised(&key).as_str() {
                "auth" => {
                    let auth: Option<BTreeMap<String, Option<String>>> = map.next_value()?;
                    let texts = auth.unwrap_or_default().into_iter();
                    let given = texts.filter_map(|(key, text)| Some((normalised(&key), text?)));
                    entry.auth.extend(given);
                }
                "regions" => entry.regions = map.next_value::<Option<Vec<Region>>>()?,
                "region_name" => {
                    let Names(names) = map.next_value()?;
                    match names.as_slice() {
                        [] => {}
                        [one] => {
                            entry.top.insert("region_name".to_owned(), one.clone());
                        }
                        // An older way to write `regions`.
                        several => {
                            let named = several.iter().map(|name| Region {
                                name: name.clone(),
                                ..Region::default()
                            });
                            entry.regions.get_or_insert_with(|| named.collect());
                        }
                    }
                }
                key @ ("interface" | "endpoint_type") => {
                    let Names(names) = map.next_value()?;
                    if !names.is_empty() {
                        entry.top.insert(key.to_owned(), names.join(","));
                    }
                }
                key if is_text_key(key) => {
                    if let Some(text) = map.next_value::<Option<String>>()? {
                        entry.top.insert(key.to_owned(), text);
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(entry)
    }
}

impl CloudEntry {
    /// What `over` has counts.
    pub(crate) fn merge(&mut self, over: Self) {
        self.top.extend(over.top);
        self.auth.extend(over.auth);
        if over.regions.is_some() {
            self.regions = over.regions;
        }
    }
}

impl Document {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong and where. The text itself is not repeated, as it has passwords.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parsed: Result<Option<Self>, _> = serde_saphyr::from_str(text);
        parsed.map(Option::unwrap_or_default).map_err(|error| {
            let place = error.location().map_or_else(String::new, |at| {
                format!("line {}, column {}: ", at.line(), at.column())
            });
            format!("{place}no YAML as clouds.yaml has it")
        })
    }

    /// Merges secure.yaml into clouds.yaml.
    pub(crate) fn merge(&mut self, secure: Self) {
        let clouds = self.clouds.get_or_insert_default();
        for (name, entry) in secure.clouds.unwrap_or_default() {
            let merged = clouds.entry(name).or_default().get_or_insert_default();
            merged.merge(entry.unwrap_or_default());
        }
    }
}
