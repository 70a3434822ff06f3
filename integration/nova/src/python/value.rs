//! Values as Python knows them, with its truth, equality and order.

use super::Dict;
use crate::fault::NovaException;
use std::cmp::Ordering;

/// Something that is neither a number nor text nor a container: a method, a versioned object.
/// Filters can name any attribute of a host state, so such values turn up; all that is known of
/// them is their class and their text.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// `str()` of it. Memory addresses in it are zeros, for nothing can rest on them.
    pub text: String,
    /// Attributes that are themselves values.
    pub attributes: Dict<Value>,
    /// True if it has a method `get` that looks into `attributes` (a `UserDict`).
    pub mapping: bool,
    /// `len()` of it where that decides its truth.
    pub len: Option<usize>,
}

#[derive(Debug, Clone)]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// Whole number; those beyond 128 bits are held at the limit.
    Int(i128),
    Float(f64),
    /// Text.
    Str(String),
    List(Vec<Value>),
    /// Dict with text for keys, as JSON has them.
    Dict(Dict<Value>),
    /// Anything else.
    Object(Box<Object>),
}

/// A number without its type.
#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Value {
    /// `bool(value)`.
    #[must_use]
    pub fn truth(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(value) => !value.is_empty(),
            Self::List(value) => !value.is_empty(),
            Self::Dict(value) => !value.is_empty(),
            Self::Object(object) => object.len != Some(0),
        }
    }

    fn number(&self) -> Option<Number> {
        match self {
            Self::Bool(value) => Some(Number::Int(i128::from(*value))),
            Self::Int(value) => Some(Number::Int(*value)),
            Self::Float(value) => Some(Number::Float(*value)),
            _ => None,
        }
    }

    /// `left == right`.
    #[must_use]
    pub fn equals(&self, other: &Self) -> bool {
        if let (Some(left), Some(right)) = (self.number(), other.number()) {
            return compare_numbers(left, right) == Some(Ordering::Equal);
        }
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Str(left), Self::Str(right)) => left == right,
            (Self::List(left), Self::List(right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| left.equals(right))
            }
            (Self::Dict(left), Self::Dict(right)) => {
                left.len() == right.len()
                    && left
                        .iter()
                        .all(|(key, left)| right.get(key).is_some_and(|right| left.equals(right)))
            }
            (Self::Object(left), Self::Object(right)) => left == right,
            _ => false,
        }
    }

    /// How two values stand to each other; inner `None`: not comparable, which makes every ordering
    /// false (NaN).
    ///
    /// # Errors
    /// TypeError for kinds that have no order, or for two different kinds.
    pub fn compare(&self, other: &Self) -> Result<Option<Ordering>, NovaException> {
        if let (Some(left), Some(right)) = (self.number(), other.number()) {
            return Ok(compare_numbers(left, right));
        }
        match (self, other) {
            (Self::Str(left), Self::Str(right)) => Ok(Some(left.cmp(right))),
            (Self::List(left), Self::List(right)) => {
                // The first pair that is not equal decides; only that pair is put in order.
                for (left, right) in left.iter().zip(right) {
                    if !left.equals(right) {
                        return left.compare(right);
                    }
                }
                Ok(Some(left.len().cmp(&right.len())))
            }
            _ => Err(NovaException::new(
                "TypeError",
                format!("'{}' and '{}' have no order", self.class(), other.class()),
            )),
        }
    }

    /// Name of the class, for messages.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::List(_) => "list",
            Self::Dict(_) => "dict",
            Self::Object(_) => "object",
        }
    }
}

/// Python compares a whole number with a float exactly, without rounding the one to the other.
fn compare_numbers(left: Number, right: Number) -> Option<Ordering> {
    match (left, right) {
        (Number::Int(left), Number::Int(right)) => Some(left.cmp(&right)),
        (Number::Float(left), Number::Float(right)) => left.partial_cmp(&right),
        (Number::Int(left), Number::Float(right)) => int_with_float(left, right),
        (Number::Float(left), Number::Int(right)) => {
            int_with_float(right, left).map(Ordering::reverse)
        }
    }
}

fn int_with_float(int: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    // 2^127: beyond it every float is larger than any 128-bit number.
    let limit = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if float >= limit {
        return Some(Ordering::Less);
    }
    if float < -limit {
        return Some(Ordering::Greater);
    }
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the bounds above hold the whole part"
    )]
    let whole = float.trunc() as i128;
    Some(int.cmp(&whole).then_with(|| {
        let rest = float - float.trunc();
        0.0_f64.partial_cmp(&rest).unwrap_or(Ordering::Equal)
    }))
}

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match value {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => number
                .as_i64()
                .map(i128::from)
                .or_else(|| number.as_u64().map(i128::from))
                .map_or_else(
                    || Self::Float(number.as_f64().unwrap_or(f64::NAN)),
                    Self::Int,
                ),
            Json::String(value) => Self::Str(value.clone()),
            Json::Array(values) => Self::List(values.iter().map(Self::from).collect()),
            Json::Object(entries) => Self::Dict(
                entries
                    .iter()
                    .map(|(key, value)| (key.clone(), value.into()))
                    .collect(),
            ),
        }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Str(value.to_owned())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(i128::from(value))
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn true_is_one_is_one_point_zero() {
        assert!(Value::Bool(true).equals(&Value::Int(1)));
        assert!(Value::Float(1.0).equals(&Value::Bool(true)));
        assert!(!Value::Str("1".into()).equals(&Value::Int(1)));
    }

    #[test]
    fn a_whole_number_and_a_float_compare_without_rounding() {
        let big = (1_i128 << 53) + 1;
        assert!(!Value::Int(big).equals(&Value::Float(9_007_199_254_740_992.0)));
        assert_eq!(
            Value::Int(2).compare(&Value::Float(2.5)).unwrap(),
            Some(Ordering::Less)
        );
        assert_eq!(
            Value::Int(-2).compare(&Value::Float(-2.5)).unwrap(),
            Some(Ordering::Greater)
        );
        assert_eq!(
            Value::Int(2).compare(&Value::Float(f64::NAN)).unwrap(),
            None
        );
    }

    #[test]
    fn text_and_number_have_no_order() {
        assert_eq!(
            Value::Int(2)
                .compare(&Value::Str("2".into()))
                .unwrap_err()
                .class,
            "TypeError"
        );
        assert_eq!(
            Value::None.compare(&Value::None).unwrap_err().class,
            "TypeError"
        );
    }

    #[test]
    fn lists_compare_by_the_first_difference() {
        let list = |items: &[i64]| Value::List(items.iter().map(|i| Value::from(*i)).collect());
        assert_eq!(
            list(&[1, 2]).compare(&list(&[1, 3])).unwrap(),
            Some(Ordering::Less)
        );
        assert_eq!(
            list(&[1, 2]).compare(&list(&[1])).unwrap(),
            Some(Ordering::Greater)
        );
        assert!(list(&[1]).equals(&Value::List(vec![Value::Bool(true)])));
    }
}
