//! Published costs of memory accesses and instructions, which are inputs of the models.
//!
//! So there is nothing to compare; a row says which model uses the figure, and for what.
//! [`Costs`](crate::cost::Costs) has a preset for each of the two tables.

use super::Row;
use super::published::Publication;

/// The rows of `lca2005.costs_ns` and `perfbook.costs_ns`.
pub fn rows() -> Vec<Row> {
    Publication::read(include_str!("costs.toml")).rows()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Costs;

    /// The input of this name, in picoseconds.
    fn given(name: &str) -> u64 {
        let row = rows().into_iter().find(|row| row.figure == name).unwrap();
        assert_eq!(row.role, crate::replay::Role::Input, "{name}");
        (Publication::read(include_str!("costs.toml")).value(name) * 1_000.0).round() as u64
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
