//! What the worlds share: a table of scenarios and faults, what comes of each, and how the table is
//! held to it.
//!
//! A world is transcriptions of some code, scenarios, and mutants. Its states, their exploration
//! and its traces are those of `system` and `explore`; this is what lies above. The scenarios, and
//! what is known about mutants, are in a file of the folder `worlds`.

use core::fmt::Debug;
use std::string::String;

use serde::Deserialize;
use serde::de::value::{self, StrDeserializer};

use crate::explore::{Model, Verdict};

/// What comes of a mutant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A promise is broken: an object is freed under a reader, or is seen too early.
    #[default]
    Unsafe,
    /// A thread sleeps for ever.
    Stuck,
    /// Nothing in any scenario: the step is not needed. Recorded, so that it is not asked again.
    Harmless,
}

impl Kind {
    /// Whether an exploration has found just that.
    pub fn agrees(self, verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Violation { .. } => self == Self::Unsafe,
            Verdict::Stuck { .. } => self == Self::Stuck,
            Verdict::Safe { .. } => self == Self::Harmless,
            Verdict::LimitReached => false,
        }
    }
}

/// What is known about a mutant in some scenarios.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    deny_unknown_fields,
    bound(deserialize = "'de: 'static, M: Deserialize<'de>")
)]
pub struct Fault<M> {
    /// The mutant.
    pub mutant: M,
    /// What comes of it.
    #[serde(rename = "comes", default)]
    pub kind: Kind,
    /// In which scenarios, or in which it would if it did harm.
    #[serde(rename = "in")]
    pub scenarios: Vec<&'static str>,
    /// TSO keeps the order that the mutant gives up: only the weak model finds it.
    #[serde(default)]
    pub weak_only: bool,
    /// What it is, or why.
    #[serde(rename = "why")]
    pub reason: String,
    /// The edges of `docs/ORDERINGS.md` that it takes away.
    #[serde(default)]
    pub edges: Vec<&'static str>,
}

impl<M> Fault<M> {
    /// Whether an exploration under `model` has found just what is recorded.
    pub fn agrees(&self, model: Model, verdict: &Verdict) -> bool {
        let is_kept = self.weak_only && model == Model::Tso;
        let expected = if is_kept { Kind::Harmless } else { self.kind };
        expected.agrees(verdict)
    }
}

/// A world's scenarios and faults.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound(deserialize = "'de: 'static, S: Deserialize<'de>, M: Deserialize<'de>")
)]
pub struct Table<S, M> {
    /// The scenarios that are explored in seconds each.
    pub scenario: Vec<S>,
    /// Bigger ones.
    #[serde(default = "Vec::new")]
    pub big: Vec<S>,
    /// Every mutant, where it is noticed.
    pub fault: Vec<Fault<M>>,
}

/// What `worlds/FILE.toml` says.
macro_rules! table {
    ($file:literal) => {{
        let path = concat!("/worlds/", $file, ".toml");
        let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/worlds/", $file, ".toml"));
        toml::from_str(text).unwrap_or_else(|error| panic!("{path}: {error}"))
    }};
}
pub(crate) use table;

/// A world whose table is `worlds/FILE.toml`, of the module's own `Scenario` and `Mutant`; `$more`
/// may add scenarios.
macro_rules! world {
    ($(#[$about:meta])* $world:ident of $file:literal $(with $more:ident)?;
     explore: $explore:expr; $($item:item)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $world;

        impl $crate::harness::World for $world {
            type Mutant = Mutant;
            type Scenario = Scenario;

            fn table() -> &'static $crate::harness::Table<Scenario, Mutant> {
                use std::sync::LazyLock;
                static TABLE: LazyLock<$crate::harness::Table<Scenario, Mutant>> =
                    LazyLock::new(|| {
                        let table = $crate::harness::table!($file);
                        $(let table = $more(table);)?
                        table
                    });
                &TABLE
            }

            fn scenario_name(scenario: &Scenario) -> &str {
                &scenario.name
            }

            fn explore(
                scenario: &Scenario,
                model: $crate::explore::Model,
                mutant: Option<Mutant>,
                limit: usize,
            ) -> $crate::explore::Verdict {
                let explore: fn(&Scenario, _, _, _) -> _ = $explore;
                explore(scenario, model, mutant, limit)
            }

            $($item)*
        }
    };
}
pub(crate) use world;

/// Transcriptions of some code, with scenarios and mutants.
pub trait World {
    /// What is left out or done wrongly.
    type Mutant: Copy + Debug + PartialEq + 'static;
    /// Which thread does what.
    type Scenario: Clone + Debug + 'static;

    /// Under which models it is explored: one, if its memory is no matter.
    const MODELS: &'static [Model] = &Model::ALL;
    /// What the names of its mutants begin with.
    const PREFIX: &'static str = "";

    /// Its scenarios, and what is known about its mutants.
    fn table() -> &'static Table<Self::Scenario, Self::Mutant>;

    /// The name of a scenario.
    fn scenario_name(scenario: &Self::Scenario) -> &str;

    /// The name of a mutant: that of the registry, `verify/mutants/mutants.toml`, if the step is
    /// one of the code, too.
    fn mutant_name(mutant: Self::Mutant) -> String {
        format!("{}{}", Self::PREFIX, kebab(&mutant))
    }

    /// Explores every state of a scenario, at most `limit` of them.
    fn explore(
        scenario: &Self::Scenario,
        model: Model,
        mutant: Option<Self::Mutant>,
        limit: usize,
    ) -> Verdict;

    /// The scenario of this name.
    fn named(name: &str) -> Option<&'static Self::Scenario> {
        let mut all = Self::table().scenario.iter().chain(&Self::table().big);
        all.find(|one| Self::scenario_name(one) == name)
    }
}

/// The scenarios that the table has for a fault.
///
/// # Panics
/// If there is none of a name.
pub fn scenarios_of<W: World>(
    fault: &Fault<W::Mutant>,
) -> impl Iterator<Item = &'static W::Scenario> {
    fault.scenarios.iter().map(|name| W::named(name).expect("the table names a scenario"))
}

/// What has this name, as a table writes it.
pub(crate) fn variant<T: Deserialize<'static>>(name: &str) -> Option<T> {
    T::deserialize(StrDeserializer::<value::Error>::new(name)).ok()
}

/// The name of a variant as the registry writes names: `NoFenceA` is `no-fence-a`.
pub(crate) fn kebab(variant: &impl Debug) -> String {
    let mut name = String::new();
    for letter in format!("{variant:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}
