//! A drop that a thread runs at the limit begins a section there, and keeps it: what the thread
//! does then it does in a section.

use crate::common::*;
use crate::unwinding::{keep_section, let_go, patient_domain};

thread_local! {
    static IN_SECTION: Cell<bool> = const { Cell::new(false) };
}

/// A domain with room for an object, and such a one in it.
fn full_domain(calls: bool) -> &'static Domain {
    let domain = patient_domain();
    tune(domain, |tuning| tuning.objects_max = 1);
    // Its drop keeps a section, and uses the room that it makes up.
    let keeps = move || {
        keep_section(domain);
        IN_SECTION.set(true);
        match calls {
            true => domain.call(|| ()).unwrap(),
            false => domain.retire(Box::new(0_u64)).unwrap(),
        }
    };
    domain.retire(Box::new(OnDrop(keeps))).unwrap();
    domain
}

fn leave(domain: &Domain) {
    IN_SECTION.set(false);
    let_go();
    assert_all_has_run(domain);
}

/// The thread waited for a grace period once more: for itself.
#[test]
fn a_closure_at_the_limit_does_not_wait_in_a_section_that_a_drop_has_begun() {
    let domain = full_domain(true);
    domain.call(|| ()).unwrap();
    assert!(IN_SECTION.get());
    leave(domain);
}

/// It was freed on the spot: in the section.
#[test]
fn an_object_without_room_is_not_freed_in_a_section_that_a_drop_has_begun() {
    let domain = full_domain(false);
    domain.retire(Box::new([OnDrop(|| assert!(!IN_SECTION.get()))])).unwrap();
    assert!(IN_SECTION.get());
    leave(domain);
    assert_eq!(domain.statistics().callbacks_panicked, 0);
}

/// Where a section ends, a domain over whose limit its thread had gone ended with the last handle,
/// the thread's own: what waited there ran in the section that a drop had begun.
#[test]
fn a_domain_does_not_end_in_a_section_that_a_drop_has_begun() {
    let (other, domain, (sender, run_by)) = (patient_domain(), Domain::new(), mpsc::channel());
    tune(&domain, |tuning| (tuning.lazy, tuning.objects_max) = (Duration::MAX, 1));
    let guard = other.read();
    domain.call(move || sender.send(thread::current().id()).unwrap()).unwrap();
    let inside = domain.clone();
    let keeps = move || {
        let _until_then = &inside;
        keep_section(other);
    };
    domain.retire(Box::new(OnDrop(keeps))).expect("one goes over the limit in a section");
    drop(domain);
    drop(guard);
    assert_ne!(run_by.recv(), Ok(thread::current().id()));
    let_go();
}
