//! Published costs of memory and of instructions: what the models are given, figure by figure.
//!
//! They are inputs, so there is nothing to compare; a row says which model uses the figure and for
//! what. [`Costs`](crate::cost::Costs) has a preset made of either table.

use super::Row;

/// The rows of `lca2005.costs_ns` and `perfbook.costs_ns`.
pub fn rows() -> Vec<Row> {
    lca2005().into_iter().chain(perfbook()).collect()
}

fn lca2005() -> Vec<Row> {
    const SOURCE: &str = "lca2005.costs_ns";
    const BUS: &str = "replays of 2003; the semaphore model's bus";
    let given =
        |figure: &str, value, purpose: &str| Row::input(SOURCE, figure, (value, "ns"), purpose);
    let unused = |figure: &str, value, reason: &str| {
        Row::not_modelled(SOURCE, figure, (value, "ns"), reason)
    };
    vec![
        given("instruction", 0.7, "replays of 2003: an engine's instructions"),
        given("clock_cycle", 1.4, "replays of 2003: all that is counted in cycles; the prefetch"),
        unused("l2_hit", 12.9, "the model's caches have one level: a line is here or elsewhere"),
        given("atomic_increment", 58.2, BUS),
        given("cmpxchg_atomic_increment", 107.3, "what the invalidation costs is told apart by it"),
        given("atomic_increment_cache_transfer", 113.2, BUS),
        given("main_memory", 162.4, "a line that another CPU has written comes by way of memory"),
        given("cpu_local_lock", 163.7, "replays of 2003: taking and releasing a lock"),
        given(
            "cmpxchg_blind_cache_transfer",
            170.4,
            "replays of 2003: a store to a line elsewhere",
        ),
        given("cmpxchg_cache_transfer_and_invalidate", 360.9, "the semaphore model's invalidation"),
    ]
}

fn perfbook() -> Vec<Row> {
    const SOURCE: &str = "perfbook.costs_ns.xeon_8176_8_socket";
    const PRESET: &str = "the preset `modern`: what-if runs, and the replay of 2014";
    const ONE_THREAD: &str = "the model's cores have one thread each";
    let given = |figure: &str, value| Row::input(SOURCE, figure, (value, "ns"), PRESET);
    let unused = |figure: &str, value| Row::not_modelled(SOURCE, figure, (value, "ns"), ONE_THREAD);
    vec![
        given("same_cpu_cas", 7.0),
        given("same_cpu_lock", 15.4),
        unused("on_core.blind_cas", 7.2),
        unused("on_core.cas", 18.0),
        given("off_core.blind_cas", 47.5),
        given("off_core.cas", 101.9),
        given("off_socket.blind_cas", 148.8),
        given("off_socket.cas", 442.9),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Costs;
    use crate::replay::{Finding, Role};

    /// The input of this name, in picoseconds.
    fn given(name: &str) -> u64 {
        let row = rows().into_iter().find(|row| row.figure == name).unwrap();
        assert_eq!(row.role, Role::Input, "{name}");
        match row.finding {
            Finding::Number { published, .. } => (published * 1_000.0).round() as u64,
            Finding::Statement { .. } => panic!("{name} is no number"),
        }
    }

    #[test]
    fn the_presets_are_made_of_what_is_said_to_be_their_input() {
        let old = Costs::p3_xeon_700mhz();
        assert_eq!(old.instruction, given("instruction"));
        assert_eq!(old.atomic, given("atomic_increment"));
        assert_eq!(old.atomic_transfer, given("atomic_increment_cache_transfer"));
        assert_eq!(old.read_transfer, given("main_memory"));
        assert_eq!(old.lock, given("cpu_local_lock"));
        let blind = given("cmpxchg_blind_cache_transfer") - given("cmpxchg_atomic_increment");
        assert_eq!(old.write_transfer, blind);
        let modern = Costs::modern();
        assert_eq!(modern.atomic, given("same_cpu_cas"));
        assert_eq!(modern.lock, given("same_cpu_lock"));
        assert_eq!(modern.atomic_transfer, given("off_core.blind_cas"));
        assert_eq!(modern.read_transfer, given("off_core.cas") - given("off_core.blind_cas"));
        let far = given("off_socket.cas");
        assert_eq!(modern.far_read_transfer, far - given("off_socket.blind_cas"));
        assert_eq!(modern.far_lock_transfer, far);
    }
}
