//! Traits: what a host is or has, as Placement names it (`HW_CPU_X86_AVX2`, `CUSTOM_RACK_7`).

use crate::ModelError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of a trait: 1 to 255 of `A-Z`, `0-9` and `_` (Placement's rule).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Trait(String);

impl Trait {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Trait {
    type Error = ModelError;

    fn try_from(name: String) -> Result<Self, ModelError> {
        if crate::resource::is_upper_name(&name) {
            Ok(Self(name))
        } else {
            Err(ModelError::Trait(crate::names::shorten(&name)))
        }
    }
}

impl FromStr for Trait {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, ModelError> {
        Self::try_from(name.to_owned())
    }
}

impl From<Trait> for String {
    fn from(name: Trait) -> Self {
        name.0
    }
}

impl fmt::Display for Trait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
