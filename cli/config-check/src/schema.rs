//! Which keys a type reads, asked of serde itself: nothing here can be behind the code.
//!
//! A value is read from a source that has nothing to give but a path. On the way down it offers one
//! key at a time; at the end of the path it writes down what was asked for (a struct with its
//! fields, a number, words to choose from) and breaks off. So no valid value is needed, and a
//! struct with required fields is looked into like any other.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};
use std::cell::RefCell;
use std::fmt;

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueShape {
    /// Text: addresses and paths, too.
    Text,
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Whole,
    /// Any number.
    Number,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list.
    List,
    /// A table with keys of the operator's.
    Table,
    /// Several of these; the type decides by itself.
    Any,
    /// A table with known keys.
    Section(&'static [&'static str]),
}

/// A key, and what it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySchema {
    /// With dots; `[]` behind a list, `*` for keys of the operator's.
    pub path: String,
    /// What it takes.
    pub shape: ValueShape,
}

/// All keys of a type below `prefix`, tables with known keys left out: their keys are there.
#[must_use]
pub fn keys<T: DeserializeOwned>(prefix: &str) -> Vec<KeySchema> {
    let mut found = Vec::new();
    look::<T>(&mut Vec::new(), prefix, &mut found);
    found
}

fn look<T: DeserializeOwned>(path: &mut Vec<Step>, name: &str, found: &mut Vec<KeySchema>) {
    let Some(shape) = shape::<T>(path) else {
        return;
    };
    match shape {
        ValueShape::Section(fields) => {
            for field in fields {
                path.push(Step::Field(field));
                let below = if name.is_empty() {
                    (*field).to_owned()
                } else {
                    format!("{name}.{field}")
                };
                look::<T>(path, &below, found);
                path.pop();
            }
        }
        ValueShape::List | ValueShape::Table => {
            path.push(Step::Item);
            let inner = shape_of_section::<T>(path);
            if shape == ValueShape::Table || inner.is_none() {
                found.push(KeySchema {
                    path: name.to_owned(),
                    shape,
                });
            }
            if inner.is_some() {
                let below = if shape == ValueShape::List {
                    format!("{name}[]")
                } else {
                    format!("{name}.*")
                };
                look::<T>(path, &below, found);
            }
            path.pop();
        }
        _ => found.push(KeySchema {
            path: name.to_owned(),
            shape,
        }),
    }
}

fn shape_of_section<T: DeserializeOwned>(path: &[Step]) -> Option<ValueShape> {
    shape::<T>(path).filter(|shape| matches!(shape, ValueShape::Section(_)))
}

/// What is asked for at the end of a path; `None` if the type never gets there.
fn shape<T: DeserializeOwned>(path: &[Step]) -> Option<ValueShape> {
    let seen = RefCell::new(None);
    // It always breaks off; whether it says why does not matter.
    let _ = T::deserialize(Source { path, seen: &seen });
    seen.into_inner()
}

/// One step of a path.
#[derive(Debug, Clone, Copy)]
enum Step {
    Field(&'static str),
    Item,
}

#[derive(Debug)]
struct Done;

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("looked at")
    }
}

impl std::error::Error for Done {}

impl de::Error for Done {
    fn custom<M: fmt::Display>(_: M) -> Self {
        Self
    }
}

#[derive(Clone, Copy)]
struct Source<'a> {
    path: &'a [Step],
    seen: &'a RefCell<Option<ValueShape>>,
}

impl Source<'_> {
    fn at_end<V>(self, shape: ValueShape) -> Result<V, Done> {
        if self.path.is_empty() {
            self.seen.replace(Some(shape));
        }
        Err(Done)
    }
}

macro_rules! leaf {
    ($($method:ident => $shape:expr),* $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Done> {
            self.at_end($shape)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Source<'_> {
    type Error = Done;

    leaf! {
        deserialize_any => ValueShape::Any,
        deserialize_bool => ValueShape::Switch,
        deserialize_i8 => ValueShape::Whole,
        deserialize_i16 => ValueShape::Whole,
        deserialize_i32 => ValueShape::Whole,
        deserialize_i64 => ValueShape::Whole,
        deserialize_i128 => ValueShape::Whole,
        deserialize_u8 => ValueShape::Whole,
        deserialize_u16 => ValueShape::Whole,
        deserialize_u32 => ValueShape::Whole,
        deserialize_u64 => ValueShape::Whole,
        deserialize_u128 => ValueShape::Whole,
        deserialize_f32 => ValueShape::Number,
        deserialize_f64 => ValueShape::Number,
        deserialize_char => ValueShape::Text,
        deserialize_str => ValueShape::Text,
        deserialize_string => ValueShape::Text,
        deserialize_bytes => ValueShape::Text,
        deserialize_byte_buf => ValueShape::Text,
        deserialize_identifier => ValueShape::Text,
        deserialize_unit => ValueShape::Any,
        deserialize_ignored_any => ValueShape::Any,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Done> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Done> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: V,
    ) -> Result<V::Value, Done> {
        self.at_end(ValueShape::Any)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Done> {
        match self.path.split_first() {
            Some((Step::Item, rest)) => visitor.visit_seq(One {
                key: None,
                below: Source { path: rest, ..self },
            }),
            _ => self.at_end(ValueShape::List),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Done> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Done> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Done> {
        match self.path.split_first() {
            // A resource class is the pickiest of the operator's keys.
            Some((Step::Item, rest)) => visitor.visit_map(One {
                key: Some("VCPU"),
                below: Source { path: rest, ..self },
            }),
            _ => self.at_end(ValueShape::Table),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Done> {
        match self.path.split_first() {
            Some((Step::Field(field), rest)) => visitor.visit_map(One {
                key: Some(field),
                below: Source { path: rest, ..self },
            }),
            _ => self.at_end(ValueShape::Section(fields)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Done> {
        self.at_end(ValueShape::Words(variants))
    }
}

/// A list of one item, or a table of one key.
struct One<'a> {
    key: Option<&'static str>,
    below: Source<'a>,
}

impl<'de> de::SeqAccess<'de> for One<'_> {
    type Error = Done;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Done> {
        seed.deserialize(self.below).map(Some)
    }
}

impl<'de> de::MapAccess<'de> for One<'_> {
    type Error = Done;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Done> {
        let Some(key) = self.key.take() else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, Done> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Done> {
        seed.deserialize(self.below)
    }
}
