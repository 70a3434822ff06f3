//! What an option is: its place, its type, its default (`oslo_config/cfg.py`,
//! `oslo_config/types.py`).

/// The type of a single value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// Text.
    Text {
        /// What is allowed; empty: everything.
        choices: &'static [&'static str],
        /// Whether upper and lower case are one where it is compared with the choices.
        ignore_case: bool,
        /// Whether a quote at the beginning has to be closed at the end, and both fall away.
        quotes: bool,
    },
    /// `true`, `yes`, `on`, `1` and their opposites, in any case.
    Bool,
    /// A whole number of 64 bits; empty is null.
    Int {
        /// Least.
        min: Option<i64>,
        /// Most.
        max: Option<i64>,
    },
    /// A number; empty is null.
    Float {
        /// Least.
        min: Option<f64>,
        /// Most.
        max: Option<f64>,
    },
}

/// The type of an option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionType {
    /// One value; of several the last one counts.
    One(Scalar),
    /// Values with commas between them.
    List {
        /// Type of each.
        item: Scalar,
        /// Whether `[` and `]` have to stand around.
        bounds: bool,
    },
    /// Pairs `key:value` with commas between them.
    Dict {
        /// Type of each value.
        value: Scalar,
        /// Whether `{` and `}` have to stand around.
        bounds: bool,
    },
    /// An option that may come several times, and each time counts.
    Many(Scalar),
}

/// When a changed value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// At the next start.
    Start,
    /// When the program reads its configuration again (`mutable` of oslo.config).
    Reload,
    /// Never: the program understands the option and does not use it.
    None,
}

/// An option. What only documentation uses (unit, sample, help, path, required, effect) does not
/// change how it is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Opt {
    /// Group; `DEFAULT` for those of none.
    pub group: &'static str,
    /// Name as in the file.
    pub name: &'static str,
    /// Type.
    pub kind: OptionType,
    /// Default, written as in a file.
    pub default: Option<&'static str>,
    /// Older groups and names of it, best first.
    pub deprecated: &'static [(&'static str, &'static str)],
    /// Whether the value must not be shown.
    pub secret: bool,
    /// Whether the value is a file or directory.
    pub path: bool,
    /// Whether the program does not start without it.
    pub required: bool,
    /// When a changed value counts.
    pub effect: Effect,
    /// Unit of a number; may be empty.
    pub unit: &'static str,
    /// A value for documentation, written as in a file (`sample_default` of oslo.config).
    pub sample: &'static str,
    /// What it does.
    pub help: &'static str,
}

const TEXT: Scalar = Scalar::Text {
    choices: &[],
    ignore_case: false,
    quotes: false,
};

impl Opt {
    const fn new(group: &'static str, name: &'static str, kind: OptionType) -> Self {
        Self {
            group,
            name,
            kind,
            default: None,
            deprecated: &[],
            secret: false,
            path: false,
            required: false,
            effect: Effect::Start,
            unit: "",
            sample: "",
            help: "",
        }
    }

    /// Text.
    #[must_use]
    pub const fn text(group: &'static str, name: &'static str) -> Self {
        Self::new(group, name, OptionType::One(TEXT))
    }

    /// A file or directory.
    #[must_use]
    pub const fn path(group: &'static str, name: &'static str) -> Self {
        let mut option = Self::text(group, name);
        option.path = true;
        option
    }

    /// True or false.
    #[must_use]
    pub const fn bool(group: &'static str, name: &'static str) -> Self {
        Self::new(group, name, OptionType::One(Scalar::Bool))
    }

    /// A whole number.
    #[must_use]
    pub const fn int(group: &'static str, name: &'static str) -> Self {
        let kind = Scalar::Int {
            min: None,
            max: None,
        };
        Self::new(group, name, OptionType::One(kind))
    }

    /// A number.
    #[must_use]
    pub const fn float(group: &'static str, name: &'static str) -> Self {
        let kind = Scalar::Float {
            min: None,
            max: None,
        };
        Self::new(group, name, OptionType::One(kind))
    }

    /// A list of text.
    #[must_use]
    pub const fn list(group: &'static str, name: &'static str) -> Self {
        let kind = OptionType::List {
            item: TEXT,
            bounds: false,
        };
        Self::new(group, name, kind)
    }

    /// A dictionary of text.
    #[must_use]
    pub const fn dict(group: &'static str, name: &'static str) -> Self {
        let kind = OptionType::Dict {
            value: TEXT,
            bounds: false,
        };
        Self::new(group, name, kind)
    }

    /// Text that may come several times.
    #[must_use]
    pub const fn many(group: &'static str, name: &'static str) -> Self {
        Self::new(group, name, OptionType::Many(TEXT))
    }

    /// With a type of its own.
    #[must_use]
    pub const fn kind(mut self, kind: OptionType) -> Self {
        self.kind = kind;
        self
    }

    /// With a default, written as in a file.
    #[must_use]
    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    /// With older groups and names.
    #[must_use]
    pub const fn deprecated(mut self, names: &'static [(&'static str, &'static str)]) -> Self {
        self.deprecated = names;
        self
    }

    /// Not to be shown.
    #[must_use]
    pub const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// Text out of a few words only.
    #[must_use]
    pub const fn choices(mut self, choices: &'static [&'static str]) -> Self {
        self.kind = OptionType::One(Scalar::Text {
            choices,
            ignore_case: false,
            quotes: false,
        });
        self
    }

    /// A whole number not below this one.
    #[must_use]
    pub const fn at_least(mut self, min: i64) -> Self {
        self.kind = OptionType::One(Scalar::Int {
            min: Some(min),
            max: None,
        });
        self
    }

    /// A whole number between these, both included.
    #[must_use]
    pub const fn between(mut self, min: i64, max: i64) -> Self {
        self.kind = OptionType::One(Scalar::Int {
            min: Some(min),
            max: Some(max),
        });
        self
    }

    /// A number not below this one.
    #[must_use]
    pub const fn at_least_float(mut self, min: f64) -> Self {
        self.kind = OptionType::One(Scalar::Float {
            min: Some(min),
            max: None,
        });
        self
    }

    /// A number between these, both included.
    #[must_use]
    pub const fn between_floats(mut self, min: f64, max: f64) -> Self {
        self.kind = OptionType::One(Scalar::Float {
            min: Some(min),
            max: Some(max),
        });
        self
    }

    /// The program does not start without it.
    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// When a changed value counts.
    #[must_use]
    pub const fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// The unit of a number.
    #[must_use]
    pub const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// What it does, and a value as an example, written as in a file.
    #[must_use]
    pub const fn help(mut self, sample: &'static str, help: &'static str) -> Self {
        self.sample = sample;
        self.help = help;
        self
    }
}
