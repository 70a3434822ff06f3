//! The macro of declarations and what it is made of.

use super::{Applies, Key, KeyMeta, OutOfRange, Setting, Shape, Type};
use serde::Serialize;

/// A struct of settings, each with its text, type, default, example and range:
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// ebbtide_model::settings! {
///     /// See `Config::database`.
///     #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
///     pub struct Database: Default {
///         /// Connections to the database at most.
///         pub max_connections: u32 = 8 => key("16").range(1..=1000);
///         /// How long a scheduler that has fallen silent keeps its duty from others.
///         // Short for a scheduler that waits to take over, long for a busy machine.
///         pub lease_seconds: u32 = 6 => key("10").range(2..=60);
///     }
/// }
///
/// assert_eq!(Database::default().max_connections, 8);
/// let keys = ebbtide_model::settings::keys::<Database>();
/// assert_eq!(keys[1].unit, "seconds");
/// assert_eq!(keys[1].default, "6");
/// ```
///
/// Unknown keys are errors. With `: Default` every field has a default and its key may be missing.
/// Without it, a field without a default is required, and serde has to be told of the default of
/// the others (`#[serde(default)]`). With `: Plain` a program reads the struct itself, without
/// serde.
///
/// The first paragraph of a field's documentation is the text that `config explain` shows; more
/// paragraphs are for developers. A field without `=>` is a table with keys of its own. See
/// [`KeyMeta`](crate::settings::KeyMeta) for what may stand behind `=>`.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident: Default {$(
            $(#[doc = $doc:literal])*
            $(#[serde($($serde:tt)*)])*
            $field_vis:vis $field:ident: $ty:ty = $default:expr $(=> $key:expr)?;
        )*}
    ) => {
        $(#[$meta])*
        #[serde(default, deny_unknown_fields)]
        $vis struct $name {$(
            $(#[doc = $doc])*
            $(#[serde($($serde)*)])*
            $field_vis $field: $ty,
        )*}

        impl Default for $name {
            fn default() -> Self {
                Self {$(
                    $field: $default,
                )*}
            }
        }

        $crate::settings! {@keys $name {$(
            [$($doc)*] $field: $ty = [$default] [$($key)?];
        )*}}
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {$(
            $(#[doc = $doc:literal])*
            $(#[serde($($serde:tt)*)])*
            $field_vis:vis $field:ident: $ty:ty $(= $default:expr)? $(=> $key:expr)?;
        )*}
    ) => {
        $(#[$meta])*
        #[serde(deny_unknown_fields)]
        $vis struct $name {$(
            $(#[doc = $doc])*
            $(#[serde($($serde)*)])*
            $field_vis $field: $ty,
        )*}

        $crate::settings! {@keys $name {$(
            [$($doc)*] $field: $ty = [$($default)?] [$($key)?];
        )*}}
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident: Plain {$(
            $(#[doc = $doc:literal])*
            $field_vis:vis $field:ident: $ty:ty $(= $default:expr)? $(=> $key:expr)?;
        )*}
    ) => {
        $(#[$meta])*
        $vis struct $name {$(
            $(#[doc = $doc])*
            $field_vis $field: $ty,
        )*}

        $crate::settings! {@keys $name {$(
            [$($doc)*] $field: $ty = [$($default)?] [$($key)?];
        )*}}
    };
    (@keys $name:ident {$(
        [$($doc:literal)*] $field:ident: $ty:ty = [$($default:expr)?] [$($key:expr)?];
    )*}) => {
        impl $name {
            /// The part of each key's declaration behind `=>`.
            fn declared() -> Vec<$crate::settings::KeyMeta> {
                #[allow(unused_imports, reason = "few structs use all of them")]
                use $crate::settings::{internal, key, section};
                vec![$(
                    $crate::settings!(@meta $($key)?),
                )*]
            }
        }

        impl $crate::settings::Setting for $name {
            fn shape() -> $crate::settings::Shape {
                $crate::settings::Shape::Section(|| {
                    let mut list = $crate::settings::KeyList::new(Self::declared());
                    $({
                        let default = $crate::settings!(@default $ty, [$($default)?], [$($key)?]);
                        list.add::<$ty>(stringify!($field), &[$($doc),*], default);
                    })*
                    list.keys()
                })
            }

            fn out_of_range(&self) -> Option<$crate::settings::OutOfRange> {
                let mut declared = Self::declared().into_iter();
                $(
                    let found = $crate::settings::field_out_of_range(
                        stringify!($field),
                        declared.next(),
                        &self.$field,
                    );
                    if found.is_some() {
                        return found;
                    }
                )*
                None
            }
        }
    };
    (@meta) => { section() };
    (@meta $key:expr) => { $key };
    (@default $ty:ty, [], [$($key:expr)?]) => { None };
    (@default $ty:ty, [$default:expr], []) => { Some(String::new()) };
    (@default $ty:ty, [$default:expr], [$key:expr]) => {
        Some($crate::settings::shown::<$ty>(&$default))
    };
}

/// Declares that configurations may hold these enums: one of the words that serde reads as a
/// variant.
#[macro_export]
macro_rules! words {
    ($($name:ty),+) => {$(
        impl $crate::settings::Setting for $name {
            fn shape() -> $crate::settings::Shape {
                let words = $crate::settings::words::<Self>();
                $crate::settings::Shape::Value($crate::settings::Type::Words(words))
            }
        }
    )+};
}

/// The keys of a struct while they are collected.
#[derive(Debug)]
pub struct KeyList {
    declared: std::vec::IntoIter<KeyMeta>,
    keys: Vec<Key>,
}

impl KeyList {
    /// None yet, of fields that are declared so.
    #[must_use]
    pub fn new(declared: Vec<KeyMeta>) -> Self {
        Self {
            declared: declared.into_iter(),
            keys: Vec::new(),
        }
    }

    /// The next field; `default` as in the file, `None` if it is required.
    pub fn add<T: Setting>(&mut self, name: &str, doc: &[&str], default: Option<String>) {
        let Some(meta) = self.declared.next().filter(|meta| !meta.internal) else {
            return;
        };
        let value = |ty: Type| Key {
            path: name.to_owned(),
            example: as_in_file(&ty, meta.example),
            ty: meta.words.map_or(ty, |words| Type::Words(words.to_vec())),
            unit: meta.unit_of(name),
            required: meta.required || default.is_none(),
            default: default.clone().unwrap_or_default(),
            range: meta.range,
            applies: if meta.sighup {
                Applies::Sighup
            } else {
                Applies::Start
            },
            secret: meta.secret,
            what: first_paragraph(doc),
        };
        let below = |prefix: String, keys: fn() -> Vec<Key>| {
            keys().into_iter().map(move |key| {
                let mut key = key.within(&prefix);
                if meta.sighup {
                    key.applies = Applies::Sighup;
                }
                key
            })
        };
        match T::shape() {
            Shape::Value(ty) => self.keys.push(value(ty)),
            Shape::Section(keys) => self.keys.extend(below(name.to_owned(), keys)),
            Shape::Rows(keys) => self.keys.extend(below(format!("{name}[]"), keys)),
            Shape::Named(keys) => {
                self.keys.push(value(Type::Table));
                self.keys.extend(below(format!("{name}.*"), keys));
            }
            Shape::Internal => {}
        }
    }

    /// All of them, in the order of the struct.
    #[must_use]
    pub fn keys(self) -> Vec<Key> {
        self.keys
    }
}

/// An example with the quotes that text has in a file.
fn as_in_file(ty: &Type, example: &str) -> String {
    match ty {
        Type::Text | Type::Path | Type::Words(_) => format!("{example:?}"),
        _ => example.to_owned(),
    }
}

/// The first paragraph of a documentation, on one line.
fn first_paragraph(doc: &[&str]) -> String {
    let lines = doc.iter().map(|line| line.trim());
    let first: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    first.join(" ")
}

/// A default as in a file; empty for what is not set.
#[must_use]
pub fn shown<T: Serialize>(default: &T) -> String {
    // JSON and TOML write the values of configurations alike.
    let text = serde_json::to_string(default).unwrap_or_default();
    let is_set = !["null", "[]", "{}"].contains(&text.as_str());
    if is_set { text } else { String::new() }
}

/// What is out of range at a field or below it.
pub fn field_out_of_range<T: Setting>(
    name: &str,
    declared: Option<KeyMeta>,
    value: &T,
) -> Option<OutOfRange> {
    let range = declared.and_then(|meta| meta.range);
    if let (Some((least, most)), Some(value)) = (range, value.number())
        && !(least..=most).contains(&value)
    {
        return Some(OutOfRange {
            key: name.to_owned(),
            value,
            least,
            most,
        });
    }
    value.out_of_range().map(|found| found.within(name))
}
