//! Locks that were taken against their order: see `src/os/lock_rank.rs`. A build with debug
//! assertions panics there, whether or not threads meet.

#![cfg_attr(not(unix), allow(unused_imports))]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use quiescence::{Domain, Srcu};

use crate::common::{again_in_time, in_child, role};

/// A fork took all locks of the first domain, down to that of its readers, and then the outermost
/// of the second one: a thread that holds the second one's and waits for the first one's would have
/// waited for ever.
#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "a child process")]
fn a_fork_takes_the_locks_of_all_domains_rank_by_rank() {
    const TEST: &str = "lock_order::a_fork_takes_the_locks_of_all_domains_rank_by_rank";
    if role().is_none() {
        let output = again_in_time(TEST, "parent", &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let ran = Arc::new(AtomicU32::new(0));
    let (domains, sleepable) = ([Domain::new(), Domain::new(), Domain::new()], Srcu::new());
    let use_all = || {
        let add = || {
            let ran = Arc::clone(&ran);
            move || _ = ran.fetch_add(1, SeqCst)
        };
        let before = ran.load(SeqCst);
        for domain in &domains {
            drop(domain.read());
            domain.call(add()).unwrap();
        }
        drop(sleepable.read());
        sleepable.call(add()).unwrap();
        domains.iter().for_each(Domain::barrier);
        sleepable.barrier();
        assert_eq!(ran.load(SeqCst), before + 4);
    };
    use_all();
    in_child(use_all);
    use_all();
}
