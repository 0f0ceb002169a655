//! `rcu costs`: what synchronisation costs on this machine, beside the table of 2005.
//!
//! Paul McKenney's talk at linux.conf.au 2005 put instructions, caches, atomics and locks into one
//! table, and the choice of a tool follows from it. This is that table again, measured here, with
//! what has become possible since: readers that execute no atomic instruction, and `membarrier`.

mod kernel;
mod one_cpu;
mod possible;
mod two_cpus;

use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cases::cache::Geometry;
use crate::data::read_toml;
use crate::slices::{self, Missing, Row, RunVerdict, Wanted};
use crate::statistics::{Spread, spread};
use crate::{Host, units};

/// Time for each figure, when no thread is in a hurry and when somebody is.
const BUDGET: Duration = Duration::from_millis(30);
const BUDGET_QUICK: Duration = Duration::from_millis(15);

/// What the measurements need to know of the machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// CPUs that this process may use, by number.
    pub cpus: Vec<usize>,
    /// Its caches.
    pub caches: Geometry,
    /// Memory that the kernel says is available.
    pub memory_available_bytes: Option<u64>,
}

/// A figure.
#[derive(Debug, Deserialize)]
struct Figure {
    /// Its name in JSON.
    id: &'static str,
    /// What it is called.
    name: &'static str,
    /// How many CPUs it needs at least.
    cpus: usize,
    /// What was published of it.
    #[serde(default)]
    published_ns: Option<f64>,
}

/// What `costs.toml` lists.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct Listed {
    figures: Vec<Figure>,
    /// Figures that are the entry and the exit of a critical section.
    sections: Vec<&'static str>,
    /// How long hits take at least and at most.
    hits_ns: Vec<(&'static str, f64, f64)>,
    /// What costs no less than what: the second, and the first.
    no_less: Vec<(&'static str, &'static str)>,
    published: Table,
}

static LISTED: LazyLock<Listed> = LazyLock::new(|| read_toml(include_str!("../../costs.toml")));

/// Where a published table of costs comes from.
#[derive(Debug, Deserialize, Serialize)]
pub struct Table {
    /// The machine it was measured on.
    pub machine: &'static str,
    /// When.
    pub year: u32,
    /// Where it is written.
    pub source: &'static str,
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Its name in JSON, as in the published table where that has it.
    pub id: &'static str,
    /// Its name for people.
    pub name: String,
    /// How many threads work in it; 0 where it cannot be measured.
    pub threads: usize,
    /// Nanoseconds here: the median of the slices that count, and their quartiles.
    pub ns: Option<Spread>,
    /// Why there is no figure.
    pub missing: Option<Missing>,
    /// Nanoseconds in the table of 2005.
    pub published_ns: Option<f64>,
}

impl Cost {
    /// The efficiency of a critical section of `section_ns`: `Tc / (Tc + Ta + Tr)`, where `Tc` is
    /// the section's own time, `Ta` that of its entry and `Tr` that of its exit (McKenney 2005).
    /// Nothing for what is no section, or was not measured.
    pub fn efficiency(&self, section_ns: f64) -> Option<f64> {
        let overhead = self.ns.filter(|_| LISTED.sections.contains(&self.id))?.median;
        (section_ns > 0.0).then(|| section_ns / (section_ns + overhead))
    }
}

/// The table.
#[derive(Clone, Debug)]
pub struct Costs {
    /// Where the other column comes from.
    pub published: &'static Table,
    /// The figures, in the order of the table.
    pub rows: Vec<Cost>,
    /// How good the run was.
    pub run: RunVerdict,
    /// The section whose efficiency is of interest, in nanoseconds.
    pub section_ns: f64,
}

/// The section of [`Costs::section_ns`] where nothing else is said: a hundred instructions or one
/// miss of all caches, as short as sections are where the choice of a lock matters.
pub const SECTION_NS: f64 = 100.0;

/// The table that others have published, which [`measure`] puts beside its figures.
pub fn published() -> &'static Table {
    &LISTED.published
}

/// About how long [`measure`] takes.
pub fn duration(quick: bool) -> Duration {
    wanted(quick, false).duration(LISTED.figures.len())
}

fn wanted(quick: bool, pin: bool) -> Wanted {
    Wanted { pin, ..Wanted::in_time(if quick { BUDGET_QUICK } else { BUDGET }, 1) }
}

/// Measures every figure, and throws away what cannot be. After a stop the rest is missing, and
/// says so.
pub fn measure(machine: &Machine, quick: bool, pin: bool, host: &mut dyn Host) -> Costs {
    let (mut costs, mut rows, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (place, &Figure { id, name, cpus, published_ns }) in LISTED.figures.iter().enumerate() {
        let detail = machine.chase_bytes(id).map(|bytes| format!(" ({})", units::bytes(bytes)));
        let name = format!("{name}{}", detail.unwrap_or_default());
        let mut cost = Cost { id, name, threads: 0, ns: None, missing: None, published_ns };
        match machine.row(id, cpus) {
            Ok(row) => {
                cost.threads = row.threads + row.sleeps.unwrap_or(0) as usize;
                rows.push(row);
                places.push(place);
            }
            Err(missing) => cost.missing = Some(missing),
        }
        costs.push(cost);
    }
    let (measured, mut run) = slices::run(&rows, &wanted(quick, pin), host);
    for (&place, measured) in places.iter().zip(measured) {
        let cost = &mut costs[place];
        let changed = possible::unsteady(&measured.values, cost.threads);
        cost.missing = measured.missing.or(changed);
        cost.ns = cost.missing.is_none().then(|| spread(&measured.values));
    }
    possible::throw_away(&mut costs);
    run.without_figure = places.iter().filter(|place| costs[**place].ns.is_none()).count() as u32;
    Costs { published: published(), rows: costs, run, section_ns: SECTION_NS }
}

impl Machine {
    /// What is timed for the figure of this name, which needs so many CPUs.
    fn row(&self, id: &str, cpus: usize) -> Result<Row<'static>, Missing> {
        if self.cpus.len().max(1) < cpus {
            return Err(Missing::NeedsCpus(cpus));
        }
        if let Some(bytes) = self.chase_bytes(id) {
            return Ok(one_cpu::dependent_load(bytes));
        }
        if ["membarrier", "membarrier_beside_reader", "interrupt"].contains(&id) {
            kernel::register_membarrier()?;
        }
        let first = [0, 1].map(|number| self.cpus.get(number).copied().unwrap_or(0));
        let row = one_cpu::row(id, cpus).or_else(|| two_cpus::row(id));
        Ok(row.or_else(|| kernel::row(id, first)).expect("each figure of the list is timed"))
    }

    /// How much to walk over so that a load finds its line in the level of this figure and in none
    /// before it.
    fn chase_bytes(&self, id: &str) -> Option<u64> {
        let Geometry { first, second_bytes, last_bytes, .. } = self.caches;
        let wanted = match id {
            "l1_hit" => first.bytes / 2,
            "l2_hit" => (second_bytes / 4).max(2 * first.bytes),
            "main_memory" => {
                let most = self.memory_available_bytes.map_or(256 << 20, |free| free / 4);
                (8 * last_bytes).clamp(64 << 20, 1 << 30).min(most)
            }
            _ => return None,
        };
        // The largest power of two that is not above it.
        Some(1 << wanted.max(4096).ilog2())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn is_figure(id: &str) -> bool {
        LISTED.figures.iter().any(|figure| figure.id == id)
    }

    /// The nanoseconds that were published.
    pub(crate) fn published() -> impl Iterator<Item = f64> {
        LISTED.figures.iter().filter_map(|figure| figure.published_ns)
    }

    /// A figure of one thread, all of whose slices took as long.
    pub(crate) fn cost(id: &'static str, ns: Option<f64>) -> Cost {
        let ns = ns.map(|ns| Spread { median: ns, low: ns, high: ns });
        Cost { id, name: id.to_owned(), threads: 1, ns, missing: None, published_ns: None }
    }

    #[test]
    fn every_figure_has_a_name_of_its_own_and_is_published_once() {
        let ids = LISTED.figures.iter().map(|figure| figure.id);
        let ids: std::collections::BTreeSet<_> = ids.collect();
        assert_eq!(ids.len(), LISTED.figures.len());
        assert_eq!(published().count(), 10, "the table of 2005");
    }

    #[test]
    fn every_figure_can_be_made_where_there_are_two_cpus() {
        let machine = Machine {
            cpus: vec![0, 1],
            caches: Geometry::USUAL,
            memory_available_bytes: Some(1 << 20),
        };
        for figure in &LISTED.figures {
            let made = machine.row(figure.id, figure.cpus);
            let threads = made.map(|row| row.threads);
            assert!(matches!(threads, Ok(1 | 2) | Err(Missing::NoMembarrier)), "{}", figure.id);
        }
        let alone = Machine { cpus: vec![0], ..machine };
        let needs_two = |figure: &&Figure| alone.row(figure.id, figure.cpus).is_err();
        let count = LISTED.figures.iter().filter(|figure| figure.cpus == 2).count();
        assert!(LISTED.figures.iter().filter(needs_two).count() >= count);
    }

    #[test]
    fn every_section_is_a_figure_and_efficiency_is_the_share_of_the_work() {
        for id in &LISTED.sections {
            assert!(is_figure(id), "{id} is no figure");
        }
        assert_eq!(cost("read_lock", Some(25.0)).efficiency(100.0), Some(0.8));
        assert_eq!(cost("read_lock", Some(300.0)).efficiency(100.0), Some(0.25));
        assert_eq!(cost("read_lock", None).efficiency(100.0), None);
        assert_eq!(cost("read_lock", Some(0.0)).efficiency(0.0), None);
        assert_eq!(cost("l1_hit", Some(1.0)).efficiency(100.0), None);
    }
}
