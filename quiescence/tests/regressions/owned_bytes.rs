//! The limit in bytes counts what a value owns, not only its own size.

#![cfg_attr(not(target_os = "linux"), allow(unused_imports))]

use crate::common::*;
use quiescence::cell::Snapshot;
use quiescence::collections::{IdMap, List, Mark};
use quiescence::epoch::{Atomic, Collector, Owned};
use quiescence::hazard::HazardDomain;
use quiescence::sync::{
    Counter, ExactCounter, Latch, LimitCounter, LocalGlobalLock, PerCpu, SeqLock,
};
use quiescence::tuning::{Engine, Fences, PerCpuPath, Tuning};
use quiescence::{Cookie, Version};
use std::sync::RwLock;

const MIB: usize = 1 << 20;

/// Stores vectors beside a section until the limit holds one back, and so many once there is room.
/// Returns how much more memory the process had then than the limit allows, as a share of it.
#[cfg(target_os = "linux")]
fn written_at_the_limit(bytes_each: usize) -> f64 {
    use memory::written;

    const LIMIT: usize = 32 * MIB;
    let domain = domain_with_limit(1 << 20, LIMIT as u64);
    let table = Rcu::new_in(vec![1_u8; bytes_each], domain.clone());
    // Storing one in a section never waits: the first that finds no room goes over the limit, the
    // next is refused.
    let before = written();
    let (stored, grown) = beside_a_section(&domain, |leave| {
        let mut stored = 0;
        let guard = domain.read();
        while table.try_store(vec![1_u8; bytes_each]).is_ok() && stored < 8 * LIMIT / bytes_each {
            stored += 1;
        }
        let grown = written().saturating_sub(before);
        leave();
        drop(guard);
        (stored, grown)
    });
    domain.barrier();
    let fitting = LIMIT / bytes_each;
    assert!(stored <= fitting + 1 && stored + 2 >= fitting, "{stored} of {bytes_each} bytes");
    assert_eq!(domain.statistics().bytes_waiting, 0);
    grown as f64 / LIMIT as f64
}

/// The README's own example: a vector counted for 24 bytes, whatever was in it.
#[test]
#[cfg(target_os = "linux")]
fn memory_beside_a_stalled_reader_stays_near_the_limit() {
    let Some(bytes) = role() else {
        return [64 << 10, MIB]
            .iter()
            .for_each(|bytes| passes_again(this_test!(), &bytes.to_string(), &[]));
    };
    let share = written_at_the_limit(bytes.parse().unwrap());
    assert!(share <= 1.3, "{share} times the limit");
}

#[derive(Default)]
struct Owner {
    name: String,
    rows: Vec<[u64; 8]>,
}

impl Weigh for Owner {
    fn owned(&self) -> usize {
        self.name.owned() + self.rows.owned()
    }
}

/// What waits in a domain in which one value was replaced.
fn waiting(replace: impl FnOnce(Domain)) -> u64 {
    let domain = domain_with_limit(1 << 20, 1 << 30);
    let waiting = beside_a_section(&domain, |leave| {
        replace(domain.clone());
        let waiting = domain.statistics().bytes_waiting;
        leave();
        waiting
    });
    assert_all_has_run(&domain);
    waiting
}

#[test]
fn every_way_to_replace_a_value_counts_what_it_owns() {
    const OWNED: usize = 100_000;
    let owner = || Owner { name: String::new(), rows: Vec::with_capacity(OWNED / 64) };
    let counted = |bytes: u64| {
        let least = OWNED / 64 * 64 + size_of::<Owner>();
        assert!((least as u64..least as u64 + 100).contains(&bytes), "{bytes} bytes");
    };
    counted(waiting(|domain| Rcu::new_in(owner(), domain).store(Owner::default())));
    counted(waiting(|domain| drop(Rcu::new_in(owner(), domain).swap(Owner::default()))));
    counted(waiting(|domain| Rcu::new_in(owner(), domain).update(|_| Owner::default())));
    counted(waiting(|domain| assert!(Rcu::new_in(owner(), domain).try_store(owner()).is_ok())));
    counted(waiting(|domain| drop(RcuOption::new_in(Some(owner()), domain).take())));
    counted(waiting(|domain| RcuOption::new_in(Some(owner()), domain).store(None)));
    counted(waiting(|domain| {
        let weight = |value: &Vec<u8>| value.len() + 48;
        Rcu::with_weight_in(vec![0; OWNED / 64 * 64], weight, domain).store(Vec::new());
    }));
    counted(waiting(|domain| {
        let list = List::new_in(domain);
        list.push_back(owner());
        list.clear();
    }));
    counted(waiting(|domain| {
        let map = IdMap::with_weight_in(|_: &&str| OWNED / 64 * 64 + size_of::<Owner>(), domain);
        let id = map.insert("light");
        assert!(map.remove(id));
    }));
}

/// It counted as one that is locked.
#[test]
fn what_a_poisoned_lock_protects_weighed_nothing() {
    let bytes = || Vec::<u8>::with_capacity(7);
    let (mutex, lock) = (Mutex::new(bytes()), RwLock::new(bytes()));
    catch_unwind(|| {
        let _held = (mutex.lock(), lock.write());
        panic!("both are poisoned");
    })
    .unwrap_err();
    assert!(mutex.is_poisoned() && lock.is_poisoned());
    assert_eq!((mutex.owned(), lock.owned()), (7, 7));
    let _held = (mutex.lock(), lock.write());
    assert_eq!((mutex.owned(), lock.owned()), (0, 0));
}

/// A place in a sleepable domain knows what it is about to replace.
#[test]
fn a_sleepable_domain_refuses_what_does_not_fit() {
    let domain = Srcu::new();
    set_limit(&domain, 1 << 20, MIB as u64);
    let table = Rcu::new_in(vec![0_u8; 300 << 10], domain.domain());
    let guard = domain.read();
    let stored = (0..10).take_while(|_| table.try_store(vec![0; 300 << 10]).is_ok()).count();
    drop(guard);
    assert_eq!(stored, 3);
    domain.barrier();
}

/// Each time it is asked it has grown.
struct Grows(Arc<AtomicUsize>);

impl Weigh for Grows {
    fn owned(&self) -> usize {
        self.0.fetch_add(1_000, SeqCst)
    }
}

/// What it was charged is what is free again.
#[test]
fn a_weight_that_has_grown_is_asked_once() {
    let domain = domain_with_limit(100, 1 << 20);
    let asked = Arc::new(AtomicUsize::new(0));
    let table = Rcu::new_in(Grows(Arc::clone(&asked)), domain.clone());
    const STORES: usize = rounds(50, 4);
    for _ in 0..STORES {
        elsewhere(|| table.store(Grows(Arc::clone(&asked))));
    }
    domain.barrier();
    assert_eq!((asked.load(SeqCst), domain.statistics().bytes_waiting), (STORES * 1_000, 0));
    domain.try_retire(Box::new([0_u8; 900 << 10])).expect("there is room");
}

/// One whose weight cannot be asked.
struct AsksForTrouble(#[expect(dead_code)] Dropped);

impl Weigh for AsksForTrouble {
    fn owned(&self) -> usize {
        panic!("on purpose")
    }
}

#[test]
fn a_weight_that_panics_loses_and_leaks_nothing() {
    let domain = domain_with_limit(4, 1 << 20);
    let dropped = Arc::new(AtomicUsize::new(0));
    let value = || AsksForTrouble(Dropped(Arc::clone(&dropped)));
    let table = Rcu::new_in(value(), domain.clone());
    (0..10).for_each(|_| table.store(value()));
    drop(table.swap(value()));
    table.update(|_| value());
    domain.barrier();
    assert_eq!((dropped.load(SeqCst), domain.statistics().callbacks_panicked), (12, 12));
    assert_eq!(domain.statistics().bytes_waiting, 0);
    drop(table);
    assert_eq!(dropped.load(SeqCst), 13);
}

/// The thread has a stock of objects, and one of closures. That the one paid for an object by its
/// size did not say that the thread was within the limit with the other.
#[test]
fn a_closure_over_the_limit_lets_no_weighed_value_go_over_it_too() {
    let domain = domain_with_limit(1 << 16, MIB as u64);
    let place = Rcu::new_in(vec![0_u8; MIB / 2], domain.clone());
    let (calls, refused, grown) = beside_a_section(&domain, |leave| {
        domain.retire(Box::new(0_u64)).expect("there is room, and more in its stock");
        elsewhere(|| {
            let is_full = |bytes: Result<(), Box<[u8]>>| bytes.is_err();
            let fill = |bytes: usize| {
                let object = vec![0_u8; bytes].into_boxed_slice();
                domain.try_retire(object).map_err(|refused| refused.into_inner())
            };
            while !is_full(fill(992)) {}
            while !is_full(fill(1)) {}
        });
        let guard = domain.read();
        let calls = [(); 2].map(|()| domain.call(|| ()).is_ok());
        let before = domain.statistics().bytes_waiting;
        let refused = place.try_store(vec![1]).is_err();
        let grown = domain.statistics().bytes_waiting - before;
        leave();
        drop(guard);
        (calls, refused, grown)
    });
    assert_eq!(calls, [true, false], "one closure goes over the limit");
    assert_eq!((refused, grown), (true, 0), "and no value after it");
    domain.barrier();
    place.store(vec![2]);
}

/// A weight may use the library, also the place in which it is asked.
#[test]
fn a_weight_may_read_and_replace() {
    static PLACE: RcuOption<Nosy> = RcuOption::empty();

    struct Nosy(u32);

    impl Weigh for Nosy {
        fn owned(&self) -> usize {
            if self.0 != 0 {
                PLACE.store(Some(Self(self.0 - 1)));
            }
            PLACE.load(&quiescence::read()).map_or(0, |seen| seen.0 as usize)
        }
    }

    PLACE.store(Some(Nosy(5)));
    PLACE.store(Some(Nosy(5)));
    quiescence::barrier();
    assert!(PLACE.load(&quiescence::read()).is_some());
}

/// The compiler asked for a derive on the socket.
#[test]
fn no_session_with_a_socket_could_be_derived() {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[derive(Weigh)]
    struct Session {
        _streams: [Option<TcpStream>; 2],
        _doors: (Option<TcpListener>, Option<UdpSocket>),
        _log: Option<std::fs::File>,
        _idle: std::sync::Condvar,
    }
    const { assert!(!Session::OWNS) };
}

/// The compiler asked for a derive on the counter.
#[test]
fn no_struct_with_a_counter_or_a_sequence_lock_could_be_derived() {
    #[derive(Weigh)]
    struct Stats {
        _counters: (Counter, ExactCounter, LimitCounter),
        _rates: (SeqLock<u64>, Latch<[u64; 2]>),
        _domains: (Srcu, HazardDomain, Collector),
        _settings: (Engine, Tuning, Fences, PerCpuPath),
        _when: (Option<Cookie>, Option<Version>, Mark),
        _shared: Atomic<Vec<u8>>,
        _plain: LocalGlobalLock<u8>,
    }
    const { assert!(!Stats::OWNS) };
}

#[test]
fn what_the_owners_of_this_library_weigh() {
    let kib = || vec![0_u8; 1_024];
    let list: List<_> = (0..3).map(|_| kib()).collect();
    assert_eq!((list.owned(), List::<u8>::new().owned()), (3 * (16 + 24), 0));

    let snapshot = Snapshot::new([0_u64; 4]);
    snapshot.store([1; 4]);
    assert_eq!(snapshot.owned(), 2 * 32);

    let locked = LocalGlobalLock::new(kib());
    let reading = locked.read();
    assert_eq!(locked.owned(), 1_024);
    drop(reading);
    let _writing = locked.write();
    assert_eq!(locked.owned(), 0);
    let values = PerCpu::new(|_| kib());
    assert_eq!(values.owned(), values.len() * (128 + 1_024));
    assert_eq!(Owned::new(kib()).owned(), 24 + 1_024);
}

#[test]
fn what_the_owners_of_the_standard_library_weigh() {
    use std::borrow::Cow;
    use std::collections::{BTreeMap, HashMap, VecDeque};

    let kib = || vec![0_u8; 1_024];
    assert_eq!(7_u64.weight(), 8);
    assert_eq!(kib().weight(), 24 + 1_024);
    assert_eq!(vec![kib(), kib()].owned(), 2 * (24 + 1_024));
    assert_eq!(Box::new(kib()).owned(), 24 + 1_024);
    assert_eq!(Some([kib(), kib()]).owned(), 2_048);
    assert_eq!((kib(), 1_u8, String::with_capacity(10)).owned(), 1_034);
    assert_eq!(VecDeque::from(kib()).owned(), 1_024);
    assert_eq!((Cow::Borrowed("text")).owned(), 0);
    let boxed: Box<[String]> = vec![String::with_capacity(100)].into();
    assert_eq!(boxed.owned(), 24 + 100);
    let shared = Arc::new(kib());
    assert_eq!(shared.owned(), 16 + 24 + 1_024);
    let other = Arc::clone(&shared);
    assert_eq!((shared.owned(), other.owned()), (0, 0));
    let locked = Mutex::new(kib());
    assert_eq!(locked.owned(), 1_024);
    let guard = locked.lock().unwrap();
    assert_eq!(locked.owned(), 0);
    drop(guard);
    let map: HashMap<u32, Vec<u8>> = (0..100).map(|key| (key, kib())).collect();
    assert!((100 * (1_024 + 32)..400 * 1_024).contains(&map.owned()), "{}", map.owned());
    let map: BTreeMap<u32, Vec<u8>> = (0..100).map(|key| (key, kib())).collect();
    assert!((100 * (1_024 + 28)..200 * 1_024).contains(&map.owned()), "{}", map.owned());
    const { assert!(!<[Option<(u8, f64)>; 3]>::OWNS && <Option<(u8, String)>>::OWNS) };
}
