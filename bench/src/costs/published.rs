//! The published figures beside which ours are printed.

/// One published table of costs.
#[derive(Debug)]
pub struct Table {
    /// The machine it was measured on.
    pub machine: &'static str,
    /// When.
    pub year: u32,
    /// Where it is written.
    pub source: &'static str,
    /// The costs by name, in nanoseconds.
    costs_ns: &'static [(&'static str, f64)],
}

/// The table of 2005.
pub(crate) static LCA_2005: Table = Table {
    machine: "4-CPU 700 MHz Pentium III",
    year: 2005,
    source: "McKenney: Linux Kernel Scalability: Using the Right Tool for the Job, \
             linux.conf.au 2005",
    costs_ns: &[
        ("instruction", 0.7),
        ("clock_cycle", 1.4),
        ("l2_hit", 12.9),
        ("atomic_increment", 58.2),
        ("cmpxchg_atomic_increment", 107.3),
        ("atomic_increment_cache_transfer", 113.2),
        ("main_memory", 162.4),
        ("cpu_local_lock", 163.7),
        ("cmpxchg_blind_cache_transfer", 170.4),
        ("cmpxchg_cache_transfer_and_invalidate", 360.9),
    ],
};

impl Table {
    /// The cost of this name, in nanoseconds, if it is in the table.
    pub fn ns(&self, id: &str) -> Option<f64> {
        self.costs_ns.iter().find(|(known, _)| *known == id).map(|(_, ns)| *ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_has_a_row_of_ours_beside_it() {
        for (id, ns) in LCA_2005.costs_ns {
            assert!(crate::costs::ids().any(|ours| ours == *id), "{id} has no row");
            assert_eq!(LCA_2005.ns(id), Some(*ns), "{id} is there once");
        }
    }
}
