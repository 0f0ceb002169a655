//! Every fault of every world, by name.

use std::boxed::Box;
use std::string::String;

use crate::Model;
use crate::engines::subjects;
use crate::harness::{Kind, World, scenarios_of};

/// Far above what any of these needs.
const LIMIT: usize = 5_000_000;

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
    let mut entries = Vec::new();
    of::<crate::GracePeriods>(&mut entries);
    of::<crate::srcu::SrcuProtocol>(&mut entries);
    of::<crate::rseq_read::Restart>(&mut entries);
    of::<crate::limit::Limited>(&mut entries);
    of::<crate::hazard::Hazard>(&mut entries);
    of::<crate::sequence::Sequence>(&mut entries);
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

fn of<W: World>(entries: &mut Vec<Entry>) {
    for fault in W::table().fault.iter().filter(|fault| fault.kind != Kind::Harmless) {
        let name = W::mutant_name(fault.mutant);
        if entries.iter().all(|entry| entry.name != name) {
            let find = Box::new(|| is_found::<W>(fault.mutant));
            entries.push(Entry { name, about: &fault.reason, find });
        }
    }
}

/// Under the model that finds it, in each scenario: TSO where both do, whose states are fewer.
fn is_found<W: World>(mutant: W::Mutant) -> bool {
    let mut faults = W::table().fault.iter().filter(|fault| fault.mutant == mutant);
    faults.all(|fault| {
        let model = if fault.weak_only { Model::Weak } else { Model::Tso };
        scenarios_of::<W>(fault)
            .all(|scenario| fault.agrees(model, &W::explore(scenario, model, Some(mutant), LIMIT)))
    })
}
