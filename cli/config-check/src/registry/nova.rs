//! The options of nova.conf as keys.

use super::{Applies, Key, Type};
use ebbtide_nova_objects::nova_conf;
use oslo_config::{Effect, Opt, OptionType, Scalar};

/// All of them.
pub(super) fn keys() -> Vec<Key> {
    let own = nova_conf::options();
    own.iter()
        .chain(&ebbtide_keystone::OPTIONS)
        .map(key)
        .collect()
}

fn key(option: &Opt) -> Key {
    Key {
        path: format!("{}.{}", option.group, option.name),
        ty: ty(option),
        unit: option.unit,
        default: option.default.unwrap_or_default().to_owned(),
        range: range(option),
        required: option.required,
        applies: match option.effect {
            Effect::Start => Applies::Start,
            Effect::Reload => Applies::Sighup,
            Effect::None => Applies::Never,
        },
        example: option.sample.to_owned(),
        secret: option.secret,
        what: option.help.to_owned(),
    }
}

fn ty(option: &Opt) -> Type {
    match option.kind {
        OptionType::One(Scalar::Text { .. }) if option.path => Type::Path,
        OptionType::One(Scalar::Text { choices: [], .. }) => Type::Text,
        OptionType::One(Scalar::Text { choices, .. }) => Type::Words(choices.to_vec()),
        OptionType::One(Scalar::Bool) => Type::Switch,
        OptionType::One(Scalar::Int { .. }) => Type::Whole,
        OptionType::One(Scalar::Float { .. }) => Type::Number,
        OptionType::List { .. } | OptionType::Many(_) => Type::List,
        OptionType::Dict { .. } => Type::Table,
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "the ends of ranges are far below the numbers that lose precision"
)]
fn range(option: &Opt) -> Option<(f64, f64)> {
    let (min, max) = match option.kind {
        OptionType::One(Scalar::Int { min, max }) => {
            (min.map(|min| min as f64), max.map(|max| max as f64))
        }
        OptionType::One(Scalar::Float { min, max }) => (min, max),
        _ => (None, None),
    };
    let none = min.is_none() && max.is_none();
    (!none).then(|| {
        (
            min.unwrap_or(f64::NEG_INFINITY),
            max.unwrap_or(f64::INFINITY),
        )
    })
}
