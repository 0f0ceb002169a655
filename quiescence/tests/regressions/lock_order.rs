//! Locks that were taken against their order: see `src/os/lock_rank.rs`. A build with debug
//! assertions panics there, whether or not threads meet.

#![cfg_attr(not(unix), allow(unused_imports))]

use crate::common::*;
/// A fork took all locks of the first domain, down to that of its readers, and then the outermost
/// of the second one: a thread that holds the second one's and waits for the first one's would have
/// waited for ever.
#[test]
#[cfg(unix)]
fn a_fork_takes_the_locks_of_all_domains_rank_by_rank() {
    in_its_own_process!();
    let ran = Arc::new(AtomicUsize::new(0));
    let (domains, sleepable) = ([Domain::new(), Domain::new(), Domain::new()], Srcu::new());
    let use_all = || {
        let add = || counting(&ran);
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
