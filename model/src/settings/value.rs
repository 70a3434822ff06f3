//! The types that a configuration can hold.

use super::{OutOfRange, Setting, Shape, Type};
use crate::{LifeTables, Seconds};
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor, value};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

macro_rules! plain {
    ($($kind:ident: $($ty:ty),*;)*) => {$($(
        impl Setting for $ty {
            fn shape() -> Shape {
                Shape::Value(Type::$kind)
            }
        }
    )*)*};
}

macro_rules! numbers {
    ($($kind:ident: $($ty:ty),*;)*) => {$($(
        impl Setting for $ty {
            fn shape() -> Shape {
                Shape::Value(Type::$kind)
            }

            #[allow(
                clippy::cast_precision_loss,
                clippy::cast_lossless,
                reason = "limits are far below the numbers that lose precision"
            )]
            fn number(&self) -> Option<f64> {
                Some(*self as f64)
            }
        }
    )*)*};
}

plain! {
    Text: String, SocketAddr;
    Path: PathBuf;
    Switch: bool;
}

numbers! {
    Whole: u16, u32, u64, usize;
    Number: f64;
}

impl Setting for Seconds {
    fn shape() -> Shape {
        u32::shape()
    }

    fn number(&self) -> Option<f64> {
        self.0.number()
    }
}

/// The programs read it from a file that another key names.
impl Setting for LifeTables {
    fn shape() -> Shape {
        Shape::Internal
    }
}

impl<T: Setting> Setting for Option<T> {
    fn shape() -> Shape {
        T::shape()
    }

    fn number(&self) -> Option<f64> {
        self.as_ref().and_then(T::number)
    }

    fn out_of_range(&self) -> Option<OutOfRange> {
        self.as_ref().and_then(T::out_of_range)
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn shape() -> Shape {
        match T::shape() {
            Shape::Section(keys) => Shape::Rows(keys),
            _ => Shape::Value(Type::List),
        }
    }

    fn out_of_range(&self) -> Option<OutOfRange> {
        let below = |(index, item): (usize, &T)| {
            let found = item.out_of_range()?;
            Some(found.within(&format!("[{index}]")))
        };
        self.iter().enumerate().find_map(below)
    }
}

impl<T> Setting for BTreeSet<T> {
    fn shape() -> Shape {
        Shape::Value(Type::List)
    }
}

impl<K: std::fmt::Display, V: Setting> Setting for BTreeMap<K, V> {
    fn shape() -> Shape {
        match V::shape() {
            Shape::Section(keys) => Shape::Named(keys),
            _ => Shape::Value(Type::Table),
        }
    }

    fn out_of_range(&self) -> Option<OutOfRange> {
        let below = |(name, item): (&K, &V)| Some(item.out_of_range()?.within(&name.to_string()));
        self.iter().find_map(below)
    }
}

/// The words of an enum without data, as its derived `Deserialize` reads them.
#[must_use]
pub fn words<T: DeserializeOwned>() -> Vec<&'static str> {
    let seen = Cell::new(&[][..]);
    // It always breaks off.
    let _ = T::deserialize(Variants(&seen));
    seen.get().to_vec()
}

/// Gives nothing, and notes for which words it is asked.
struct Variants<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Variants<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
        Err(value::Error::custom("no words"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, value::Error> {
        self.0.set(variants);
        Err(value::Error::custom("only looked at"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
