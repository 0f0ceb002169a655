//! What the worlds share: a table of faults, what comes of each, and how the table is held to it.
//!
//! A world is transcriptions of some code, scenarios, and mutants. Its states, their exploration
//! and its traces are those of `system` and `explore`; this is what lies above.

use core::fmt::Debug;
use std::string::String;

use crate::explore::{Model, Verdict};

/// What comes of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A promise is broken: an object is freed under a reader, or is seen too early.
    Unsafe,
    /// A thread sleeps for ever.
    Stuck,
    /// Nothing in any scenario: the step is not needed. Recorded, so that it is not asked again.
    Harmless,
}

/// Under which models a mutant is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Models {
    /// Under both.
    Both,
    /// Under the weak one only: TSO keeps the order that the mutant gives up.
    WeakOnly,
    /// Under none, being harmless.
    Neither,
}

/// What is known about a mutant in a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Fault<M> {
    /// The mutant.
    pub mutant: M,
    /// What comes of it.
    pub kind: Kind,
    /// In which scenario, or in which it would if it did harm.
    pub scenario: &'static str,
    /// Under which models.
    pub models: Models,
    /// What it is, or why.
    pub reason: &'static str,
}

/// A world's table of faults, `FAULTS`, of its own `Mutant`: a line for each, with the scenario, or
/// those, in which it is noticed. A variant that has a name in it is written with that name.
macro_rules! faults {
    (@ $($mutant:expr, $kind:ident $models:ident [$($scenario:literal)+] $reason:literal;)*) => {
        /// Every mutant, in each scenario where it is noticed.
        pub const FAULTS: &[$crate::harness::Fault<Mutant>] = &[
            $($($crate::harness::Fault {
                mutant: $mutant,
                kind: $crate::harness::Kind::$kind,
                scenario: $scenario,
                models: $crate::harness::Models::$models,
                reason: $reason,
            },)+)*
        ];
    };
    ($($mutant:ident $kind:ident $models:ident [$($scenario:literal)+] $reason:literal;)*) => {
        $crate::harness::faults! {
            @ $(Mutant::$mutant, $kind $models [$($scenario)+] $reason;)*
        }
    };
    ($($mutant:ident $(($named:literal))? $kind:ident $models:ident $scenario:literal
       $reason:literal;)*) => {
        $crate::harness::faults! {
            @ $(Mutant::$mutant $(($named))?, $kind $models [$scenario] $reason;)*
        }
    };
}
pub(crate) use faults;

impl<M> Fault<M> {
    /// Whether an exploration under `model` has found just what is recorded.
    pub fn agrees(&self, model: Model, verdict: &Verdict) -> bool {
        let expected = match (self.models, model) {
            (Models::Both, _) | (Models::WeakOnly, Model::Weak) => Some(self.kind),
            _ => None,
        };
        match verdict {
            Verdict::Violation { .. } => expected == Some(Kind::Unsafe),
            Verdict::Stuck { .. } => expected == Some(Kind::Stuck),
            Verdict::Safe { .. } => expected.is_none(),
            Verdict::LimitReached => false,
        }
    }
}

/// Transcriptions of some code, with scenarios and mutants.
pub trait World {
    /// What is left out or done wrongly.
    type Mutant: Copy + Debug + PartialEq + 'static;
    /// Which thread does what.
    type Scenario: Clone + Debug;

    /// Under which models it is explored: one, if its memory is no matter.
    const MODELS: &'static [Model] = &Model::ALL;
    /// Every mutant, in each scenario where it is noticed.
    const FAULTS: &'static [Fault<Self::Mutant>];
    /// What the names of its mutants begin with, if they are those of the variants.
    const PREFIX: &'static str = "";

    /// The scenarios that are explored in seconds each.
    fn scenarios() -> Vec<Self::Scenario>;

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
    fn named(name: &str) -> Option<Self::Scenario> {
        Self::scenarios().into_iter().find(|one| Self::scenario_name(one) == name)
    }
}

/// The scenario that the table has for a fault.
///
/// # Panics
/// If there is none of this name.
pub fn scenario_of<W: World>(fault: &Fault<W::Mutant>) -> W::Scenario {
    W::named(fault.scenario).expect("the table names a scenario")
}

/// Explores the scenarios without any mutant. Returns those that are not safe, with what was found.
pub fn unsafe_scenarios<W: World>(
    limit: usize,
    is_asked: impl Fn(&W::Scenario, Model) -> bool,
) -> Vec<String> {
    let mut found = Vec::new();
    for scenario in W::scenarios() {
        for model in W::MODELS.iter().copied().filter(|model| is_asked(&scenario, *model)) {
            let verdict = W::explore(&scenario, model, None, limit);
            let told = format!("{} under {model:?}: {verdict}", W::scenario_name(&scenario));
            println!("{told}");
            if !verdict.is_safe() {
                found.push(told);
            }
        }
    }
    found
}

/// Explores each fault in its scenario. Returns what is not as the table says: faults of which
/// something else comes, and those that do harm and are found under none of the models.
pub fn wrong_faults<W: World>(
    limit: usize,
    is_asked: impl Fn(&Fault<W::Mutant>, Model) -> bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for fault in W::FAULTS {
        let scenario = scenario_of::<W>(fault);
        let models = W::MODELS.iter().copied().filter(|model| is_asked(fault, *model));
        let mut verdicts = Vec::new();
        for model in models {
            let verdict = W::explore(&scenario, model, Some(fault.mutant), limit);
            let name = W::mutant_name(fault.mutant);
            let told = format!("{name} in {} under {model:?}: {verdict}", fault.scenario);
            println!("{told}\n");
            if !fault.agrees(model, &verdict) {
                wrong.push(told);
            }
            verdicts.push(verdict);
        }
        let is_found = verdicts.iter().any(Verdict::is_fault);
        if !verdicts.is_empty() && !is_found && fault.kind != Kind::Harmless {
            wrong.push(format!("{} is not found", W::mutant_name(fault.mutant)));
        }
    }
    wrong
}

/// Explores each harmless fault in all scenarios. Returns those where it does harm.
///
/// # Panics
/// If a fault is listed as harmless and as one that a model must find.
pub fn harm_of_harmless_faults<W: World>(
    limit: usize,
    is_asked: impl Fn(&W::Scenario, Model) -> bool,
) -> Vec<String> {
    let mut harm = Vec::new();
    for fault in W::FAULTS.iter().filter(|fault| fault.kind == Kind::Harmless) {
        assert_eq!(fault.models, Models::Neither);
        for scenario in W::scenarios() {
            for model in W::MODELS.iter().copied().filter(|model| is_asked(&scenario, *model)) {
                let verdict = W::explore(&scenario, model, Some(fault.mutant), limit);
                if !verdict.is_safe() {
                    let (name, place) = (W::mutant_name(fault.mutant), W::scenario_name(&scenario));
                    harm.push(format!("{name} in {place}: {verdict}"));
                }
            }
        }
    }
    harm
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
