//! Every fault of every world, by name.

use std::boxed::Box;
use std::string::String;

use crate::Model;
use crate::engines::subjects;
use crate::harness::{Kind, World};

/// Far above what any of these needs.
const LIMIT: usize = 5_000_000;

/// All worlds but the engines'.
pub fn worlds() -> [&'static World; 6] {
    [
        &crate::GRACE_PERIODS,
        &crate::srcu::SRCU,
        &crate::rseq_read::RESTART,
        &crate::limit::LIMITED,
        &crate::hazard::HAZARD,
        &crate::sequence::SEQUENCE,
    ]
}

/// A fault that does harm.
#[allow(missing_debug_implementations)] // it is a name and a function
pub struct Entry {
    /// Its name: that of the registry, `verify/mutants/mutants.toml`, if the step is one of the
    /// code, too.
    pub name: String,
    /// What it is.
    pub about: &'static str,
    find: Box<dyn Fn() -> bool>,
}

impl Entry {
    /// Explores it in each of its scenarios. Whether what comes of it is what is recorded.
    pub fn is_found(&self) -> bool {
        (self.find)()
    }
}

/// All of them, each once.
pub fn entries() -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for world in worlds() {
        for fault in world.faults.iter().filter(|fault| fault.kind != Kind::Harmless) {
            if entries.iter().all(|entry| entry.name != fault.mutant) {
                let find = Box::new(|| is_found(world, fault.mutant));
                entries.push(Entry { name: fault.mutant.into(), about: &fault.reason, find });
            }
        }
    }
    for subject in subjects() {
        let harmful = subject.faults().filter(|expected| expected.comes != Kind::Harmless);
        entries.extend(harmful.filter_map(|expected| {
            let name = format!("{}-without-{}", subject.name, expected.step?);
            let explore = || subject.explore(&expected.on, expected.step, LIMIT);
            let find = Box::new(move || expected.comes.agrees(&explore()));
            Some(Entry { name, about: "An engine without a step.", find })
        }));
    }
    entries
}

/// The one of this name.
pub fn named(name: &str) -> Option<Entry> {
    entries().into_iter().find(|entry| entry.name == name)
}

/// Under the model that finds it, in each scenario: TSO where both do, whose states are fewer.
fn is_found(world: &World, mutant: &'static str) -> bool {
    let mut faults = world.faults.iter().filter(|fault| fault.mutant == mutant);
    faults.all(|fault| {
        let model = if fault.weak_only { Model::Weak } else { Model::Tso };
        world
            .scenarios_of(fault)
            .all(|scenario| fault.agrees(model, &scenario.explore(model, Some(mutant), LIMIT)))
    })
}
