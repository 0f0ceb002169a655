//! What the worlds share: scenarios and faults, what comes of each, and how tables are held to it.
//!
//! A world is transcriptions of some code, scenarios, and mutants: steps that are left out or
//! weakened, which have names and are nothing else. Its states, their exploration and its traces
//! are those of `system` and `explore`; this is what lies above. The scenarios, and what is known
//! about mutants, are in a file of the folder `worlds`.

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
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fault {
    /// The mutant: the name of the registry, `verify/mutants/mutants.toml`, if the step is one of
    /// the code, too.
    pub mutant: &'static str,
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

impl Fault {
    /// Whether an exploration under `model` has found just what is recorded.
    pub fn agrees(&self, model: Model, verdict: &Verdict) -> bool {
        let is_kept = self.weak_only && model == Model::Tso;
        let expected = if is_kept { Kind::Harmless } else { self.kind };
        expected.agrees(verdict)
    }
}

/// Which thread does what, in some world.
pub trait Explored: Debug + Send + Sync + 'static {
    /// Short and unique in its world.
    fn name(&self) -> &str;

    /// Explores every state, perhaps with a mutant, at most `limit` of them.
    fn explore(&self, model: Model, mutant: Option<&'static str>, limit: usize) -> Verdict;
}

/// What `worlds/FILE.toml` says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static, S: Deserialize<'de>"))]
pub(crate) struct Table<S> {
    pub(crate) scenario: Vec<S>,
    #[serde(default = "Vec::new")]
    pub(crate) big: Vec<S>,
    fault: Vec<Fault>,
}

/// The same, of that file.
macro_rules! table {
    ($file:literal) => {{
        let path = concat!("/worlds/", $file, ".toml");
        let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/worlds/", $file, ".toml"));
        toml::from_str(text).unwrap_or_else(|error| panic!("{path}: {error}"))
    }};
}
pub(crate) use table;

/// Transcriptions of some code, with scenarios and mutants.
#[derive(Debug)]
pub struct World {
    /// Under which models it is explored: one, if its memory is no matter.
    pub models: &'static [Model],
    /// The scenarios that are explored in seconds each.
    pub scenarios: Vec<Box<dyn Explored>>,
    /// Bigger ones.
    pub big: Vec<Box<dyn Explored>>,
    /// Every mutant, where it is noticed.
    pub faults: Vec<Fault>,
}

impl World {
    pub(crate) fn new<S: Explored>(models: &'static [Model], table: Table<S>) -> Self {
        let boxed = |all: Vec<S>| {
            all.into_iter().map(|one| -> Box<dyn Explored> { Box::new(one) }).collect()
        };
        let Table { scenario, big, fault } = table;
        Self { models, scenarios: boxed(scenario), big: boxed(big), faults: fault }
    }

    /// All scenarios, the bigger ones too.
    pub fn all(&self) -> impl Iterator<Item = &dyn Explored> {
        self.scenarios.iter().chain(&self.big).map(|scenario| &**scenario)
    }

    /// The scenario of this name.
    pub fn named(&self, name: &str) -> Option<&dyn Explored> {
        self.all().find(|scenario| scenario.name() == name)
    }

    /// The scenarios that the table has for a fault.
    ///
    /// # Panics
    /// If there is none of a name.
    pub fn scenarios_of(&self, fault: &Fault) -> impl Iterator<Item = &dyn Explored> {
        fault.scenarios.iter().map(|name| self.named(name).expect("the table names a scenario"))
    }
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
