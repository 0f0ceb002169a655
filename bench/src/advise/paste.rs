//! Code to paste: for each design a program of some ten lines, for each shape of state.
//!
//! The programs are files in `paste/`. They are compiled and run by the tests of this module, so
//! that what `rcu advise` prints is known to work.

use super::Workload;

/// The program of a design, and the modules that compile them all.
macro_rules! programs {
    ($($kind:ident {
        $($(#[cfg(feature = $feature:literal)])? $module:ident $name:literal,)*
    })*) => {
        fn find(kind: &str, name: &str) -> Option<&'static str> {
            match (kind, name) {
                $($((stringify!($kind), $name) => Some(include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"), "/paste/", stringify!($kind), "/", $name, ".rs"
                ))),)*)*
                _ => None,
            }
        }

        #[cfg(test)]
        mod compiled {
            $(mod $kind {
                $($(#[cfg(feature = $feature)])? mod $module {
                    include!(concat!(
                        env!("CARGO_MANIFEST_DIR"), "/paste/", stringify!($kind), "/", $name, ".rs"
                    ));

                    #[test]
                    fn runs() {
                        main();
                    }
                })*
            })*
        }
    };
}

programs! {
    table {
        std_mutex "std-mutex",
        std_rwlock "std-rwlock",
        parking_lot_mutex "parking_lot-mutex",
        parking_lot_rwlock "parking_lot-rwlock",
        mutex_per_bucket "mutex-per-bucket",
        mutex_per_value "mutex-per-value",
        sharded_rwlock "sharded-rwlock",
        dashmap "dashmap",
        papaya "papaya",
        quiescence_hashmap "quiescence-hashmap",
        quiescence "quiescence",
        quiescence_qsbr "quiescence-qsbr",
        quiescence_arc_cell "quiescence-arc-cell",
        arc_swap "arc-swap",
        quiescence_srcu "quiescence-srcu",
        crossbeam_epoch "crossbeam-epoch",
        seize "seize",
    }
    config {
        std_mutex "std-mutex",
        std_rwlock "std-rwlock",
        parking_lot_mutex "parking_lot-mutex",
        parking_lot_rwlock "parking_lot-rwlock",
        quiescence "quiescence",
        quiescence_qsbr "quiescence-qsbr",
        quiescence_arc_cell "quiescence-arc-cell",
        arc_swap "arc-swap",
        quiescence_srcu "quiescence-srcu",
        crossbeam_epoch "crossbeam-epoch",
        seize "seize",
        arc_swap_cache "arc-swap-cache",
        quiescence_seqlock "quiescence-seqlock",
        quiescence_snapshot "quiescence-snapshot",
    }
    counter {
        std_mutex "std-mutex",
        std_rwlock "std-rwlock",
        parking_lot_mutex "parking_lot-mutex",
        atomic_shared "atomic-shared",
        #[cfg(feature = "all-rivals")] contatori "contatori",
        #[cfg(feature = "all-rivals")] thread_local "thread-local",
        quiescence_counter "quiescence-counter",
        quiescence_exact "quiescence-exact",
    }
    limit {
        std_mutex "std-mutex",
        parking_lot_mutex "parking_lot-mutex",
        atomic_shared "atomic-shared",
        quiescence_limit "quiescence-limit",
    }
    queue {
        std_mutex "std-mutex",
        parking_lot_mutex "parking_lot-mutex",
        std_mpsc "std-mpsc",
        crossbeam_queue "crossbeam-queue",
        quiescence_queue "quiescence-queue",
        quiescence_stack "quiescence-stack",
    }
    ids {
        std_mutex "std-mutex",
        std_rwlock "std-rwlock",
        parking_lot_mutex "parking_lot-mutex",
        parking_lot_rwlock "parking_lot-rwlock",
        dashmap "dashmap",
        quiescence_idmap "quiescence-idmap",
    }
}

/// The program of the design of this name. Where keys come and go, a design without an index of
/// its own has one such place for each bucket: its program is that of a single value.
pub(super) fn program(workload: Workload, name: &str, is_per_key: bool) -> Option<&'static str> {
    let kind = match workload {
        Workload::Churn if is_per_key => "config",
        Workload::Table | Workload::Churn => "table",
        Workload::Config => "config",
        Workload::Counter | Workload::ExactCounter => "counter",
        Workload::LimitCounter => "limit",
        Workload::Queue => "queue",
        Workload::Ids => "ids",
    };
    find(kind, name)
}
