//! The forms of what is measured before and after a remedy.

use serde::Deserialize;

/// A form.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// As one writes it without a thought of what is taught.
    Before,
    /// With a part of the remedy, or another one.
    Halfway,
    /// With the remedy.
    After,
}

impl Form {
    /// All of them, in the order of the tables.
    pub(crate) const ALL: [Self; 3] = [Self::Before, Self::Halfway, Self::After];

    /// Those that there are of everything.
    pub(crate) const BOTH: [Self; 2] = [Self::Before, Self::After];

    /// Its name in tables and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Halfway => "halfway",
            Self::After => "after",
        }
    }
}
