use super::*;
use crate::Domain;
use crate::common::{random::Random, threads::elsewhere};
use crate::os::fence::{self, Fences};
use crate::reclaim::local;

/// Looks at the calling thread's table, which is not swept for that.
fn peek<R>(f: impl FnOnce(&Table) -> R) -> R {
    TABLE.with_borrow(|table| f(table))
}

/// How many entries the calling thread has, and how many it checks to find its sections.
fn entries() -> (usize, usize) {
    peek(|table| (table.watched.len() + table.others.len(), table.watched.len()))
}

/// The table was once a list, searched from its beginning: a read took 95 µs in the last of
/// 20,000 domains.
#[test]
#[cfg_attr(miri, ignore = "thousands of domains")]
fn the_last_of_many_domains_is_found_in_a_few_steps() {
    elsewhere(|| {
        let domains: Vec<_> = (0..5_000).map(|_| Domain::new()).collect();
        domains.iter().for_each(|domain| drop(domain.read()));
        assert_eq!(entries().0, 5_000);
        assert!(peek(|table| table.watched.crowd(13)) <= 16);
    });
}

/// A thread once went through all its domains at every ninth retirement, to see whether it was
/// in a section.
///
/// If other tests end enough domains meanwhile that the table is swept, the thread forgets the
/// domain that it last read in; then the steps are repeated.
#[test]
#[cfg_attr(miri, ignore = "thousands of domains")]
fn sections_are_found_without_going_through_all_domains() {
    use local::Sections::{None, Ordinary};
    let went_through_table = || peek(|table| table.ended);
    let in_section_and_entries = || (local::Sections::of_this_thread(), entries().1);
    let steps = || {
        let domains: Vec<_> = (0..2_000).map(|_| Domain::new()).collect();
        domains.iter().for_each(|domain| drop(domain.read()));
        let began = went_through_table();
        let (reader, guard) = (domains[7].reader(), domains[1_234].read());
        assert_eq!(entries().0, 2_000, "all of them may be");
        let in_first = in_section_and_entries();
        drop(guard);
        let after_first = in_section_and_entries();
        let guard = reader.read();
        let in_handles = in_section_and_entries().0;
        drop(guard);
        let again = domains[1_234].read();
        let in_second = in_section_and_entries().0;
        drop((again, reader));
        let after_second = in_section_and_entries();
        drop(domains[3].read());
        let after_third = in_section_and_entries();
        (went_through_table() == began).then_some((
            [in_first, after_first, after_second, after_third],
            [in_handles, in_second],
        ))
    };
    let seen = std::iter::repeat_with(|| elsewhere(steps)).find_map(|seen| seen);
    let (steps, others) = seen.expect("tests beside this one end");
    assert_eq!(steps[0], (Ordinary, 2), "the handle's, and the one with a section");
    // Under portable fences there is no fast path, and the last one is not remembered.
    let last = usize::from(fence::chosen() == Fences::Membarrier);
    assert_eq!(steps[1], (None, 1 + last), "the last one that was read in is remembered");
    assert_eq!(steps[2..], [(None, last); 2], "the last one alone");
    assert_eq!(others, [Ordinary; 2]);
}

/// Entries of ended domains are removed: at once by the thread that ends them, by others at a
/// later use.
#[test]
fn what_ended_domains_leave_in_tables_is_forgotten() {
    elsewhere(|| {
        let mine = Domain::new();
        let theirs: Vec<_> = (0..100).map(|_| Domain::new()).collect();
        theirs.iter().chain([&mine]).for_each(|domain| drop(domain.read()));
        let gone = Domain::new();
        drop(gone.read());
        assert_eq!(entries().0, 102);
        drop(gone);
        assert_eq!(entries(), (101, 101));
        elsewhere(move || drop(theirs));
        assert_eq!(entries(), (101, 101), "nobody else touches the table");
        drop(mine.read());
        assert_eq!(entries(), (1, 1));
    });
}

/// Entries move when one is watched or removed: removing a domain from any place removes no
/// other, and those that are watched stay so.
#[test]
fn lists_of_a_table_follow_its_entries() {
    elsewhere(|| {
        let many = if cfg!(miri) { 12 } else { 64 };
        let mut domains: Vec<_> = (0..many).map(|_| Domain::new()).collect();
        domains.iter().for_each(|domain| drop(domain.read()));
        let mut random = Random(7);
        while let Some(last) = domains.pop() {
            let at = random.index(domains.len() + 1);
            let guard = last.read();
            assert_eq!(local::Sections::of_this_thread(), local::Sections::Ordinary);
            drop(guard);
            // The domain that ends is not the one that was read in last, if there is another.
            drop(if at < domains.len() { std::mem::replace(&mut domains[at], last) } else { last });
            domains.iter().step_by(3).for_each(|domain| drop(domain.read()));
            peek(|table| {
                assert_eq!(table.watched.len() + table.others.len(), domains.len());
                let is_of = |own: &Own, core| own.handle().is_some_and(|of| ptr::eq(&*of, core));
                for (at, domain) in domains.iter().enumerate() {
                    let core: *const DomainState = Named::core(domain.tag());
                    let own = table.find(Named::core(domain.tag()));
                    assert!(is_of(own.expect("it has not ended"), core));
                    let mut watched = table.watched();
                    assert!(
                        at % 3 != 0 || watched.any(|own| is_of(own, core)),
                        "it may read again"
                    );
                }
            });
        }
    });
}

/// Once it had a handle of the global domain, a thread searched its table for sections for good,
/// though the slot is the one that it finds at once.
#[test]
fn a_handle_of_the_global_domain_is_no_other_slot() {
    elsewhere(|| {
        drop(crate::read());
        let is_found_at_once = !ptr::eq(thread_slots::global_slot(), crate::gp::slot::NOT_READY);
        drop(Domain::global().reader());
        assert_eq!(HAS_OTHER_SLOTS.get(), !is_found_at_once);
        drop(Domain::new().reader());
        assert!(HAS_OTHER_SLOTS.get());
        drop(Domain::global().reader());
        assert!(HAS_OTHER_SLOTS.get(), "for good");
    });
}
