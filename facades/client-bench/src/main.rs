//! What programs on `arc-swap`, `crossbeam-epoch` and `seize` cost: one case in a process, which
//! `cargo xtask facades --measure` runs with the originals and with the facades in turns.
//!
//! Prints a line for each figure: its name, the number, the unit.

use std::fs;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use crossbeam_epoch::{self as epoch, Owned};
use crossbeam_skiplist::SkipMap;
use moka::sync::Cache;

/// Keys of the maps: so many that a look-up misses the cache.
const KEYS: u64 = 100_000;

/// Keys of those that are only looked up as well, which stay in the cache.
const KEYS_FEW: u64 = 1_000;

/// Operations of a thread.
const OPERATIONS: u32 = 1_000_000;

/// One operation in so many is timed by itself.
const TIMED: u32 = 16;

/// What the thread retires that another one's guard holds up: so many objects of a KiB.
const GARBAGE: u32 = 300_000;

/// How long that guard lives, if the other thread has not retired all before.
const PINNED: Duration = Duration::from_secs(2);

/// What each case is called by.
const CASES: [(&str, fn()); 7] = [
    ("pin", pin),
    ("arc-swap", arc_swap),
    ("skiplist", skiplist),
    ("moka", cache),
    ("papaya", papaya_map),
    ("pinned", pinned),
    ("papaya-pinned", papaya_pinned),
];

fn main() {
    let asked = std::env::args().nth(1).unwrap_or_default();
    let Some((_, case)) = CASES.iter().find(|(name, _)| *name == asked) else {
        eprintln!("usage: client-bench {}", CASES.map(|(name, _)| name).join("|"));
        std::process::exit(2);
    };
    case();
    say("RSS peak", resident("VmHWM:"), "MiB");
}

fn say(name: &str, number: f64, unit: &str) {
    println!("{name}\t{number:.3}\t{unit}");
}

/// A line of the process's status, in MiB; 0 where the system has none.
fn resident(line: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|l| l.strip_prefix(line)?.trim().strip_suffix(" kB"));
    found.and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// Numbers that look random, the same in each run (xorshift64*, Vigna 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

fn pin() {
    let count = 20_000_000;
    let began = Instant::now();
    for _ in 0..count {
        black_box(&epoch::pin());
    }
    say("pin and drop", began.elapsed().as_nanos() as f64 / f64::from(count), "ns");
}

/// Nanoseconds an operation, by so many threads, and the 99.9th percentile of those that are timed.
fn measure(name: &str, threads: u64, operation: impl Fn(&mut Random) + Sync) {
    let start = Barrier::new(threads as usize);
    let of_a_thread = |thread: u64| {
        let mut random = Random(0x9e37_79b9 + thread);
        let mut timed = Vec::with_capacity((OPERATIONS / TIMED) as usize);
        start.wait();
        let began = Instant::now();
        for number in 0..OPERATIONS {
            if number % TIMED == 0 {
                let began = Instant::now();
                operation(&mut random);
                timed.push(began.elapsed().as_nanos() as f64);
            } else {
                operation(&mut random);
            }
        }
        (began.elapsed().as_nanos() as f64 / f64::from(OPERATIONS), timed)
    };
    let (mut each, mut timed) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        let of_a_thread = &of_a_thread;
        let running: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || of_a_thread(thread))).collect();
        for thread in running {
            let (nanoseconds, times) = thread.join().expect("no operation panics");
            each.push(nanoseconds);
            timed.extend(times);
        }
    });
    timed.sort_by(f64::total_cmp);
    say(&format!("{name}, {threads} thr."), each.iter().sum::<f64>() / threads as f64, "ns");
    say(&format!("{name}, {threads} thr., p99.9"), timed[timed.len() / 1000 * 999], "ns");
}

/// Loads of a pointer that stays, stores, and loads among stores.
fn arc_swap() {
    let place = ArcSwap::from_pointee(7_u64);
    for threads in [1, 2] {
        measure("load and drop", threads, |_| _ = black_box(**place.load()));
    }
    for threads in [1, 2] {
        measure("load_full and drop", threads, |_| _ = black_box(*place.load_full()));
    }
    measure("store", 1, |_| place.store(Arc::new(7)));
    measure("load, one in 100 stores", 2, |random| {
        if random.below(100) == 0 {
            place.store(Arc::new(7));
        } else {
            black_box(**place.load());
        }
    });
}

fn skiplist() {
    let map = SkipMap::new();
    let mut random = Random(7);
    while (map.len() as u64) < KEYS {
        let key = random.below(2 * KEYS);
        map.insert(key, key);
    }
    for (name, keys) in [("", KEYS), ("1,000 keys, ", KEYS_FEW)] {
        let map = if keys == KEYS { &map } else { &(0..keys).map(|key| (2 * key, key)).collect() };
        for threads in [1, 2] {
            measure(&format!("{name}look-ups"), threads, |random| {
                black_box(map.get(&random.below(2 * keys)).map(|entry| *entry.value()));
            });
        }
    }
    for threads in [1, 2] {
        measure("half updates", threads, |random| {
            let key = random.below(2 * KEYS);
            match random.below(4) {
                0 => _ = map.insert(key, key),
                1 => _ = map.remove(&key),
                _ => _ = black_box(map.contains_key(&key)),
            }
        });
    }
}

fn cache() {
    let cache = Cache::new(KEYS / 2);
    for threads in [1, 2] {
        measure("10 % inserts", threads, |random| {
            let key = random.below(KEYS);
            if random.below(10) == 0 {
                cache.insert(key, [key; 8]);
            } else {
                black_box(cache.get(&key));
            }
        });
    }
}

fn papaya_map() {
    let filled = |keys| (0..keys).map(|key| (2 * key, key)).collect::<papaya::HashMap<_, _>>();
    let map = filled(KEYS);
    for (name, keys) in [("", KEYS), ("1,000 keys, ", KEYS_FEW)] {
        let map = if keys == KEYS { &map } else { &filled(keys) };
        for threads in [1, 2] {
            measure(&format!("{name}look-ups"), threads, |random| {
                black_box(map.pin().get(&random.below(2 * keys)).copied());
            });
        }
    }
    for threads in [1, 2] {
        measure("half updates", threads, |random| {
            let key = random.below(2 * KEYS);
            let map = map.pin();
            match random.below(4) {
                0 => _ = map.insert(key, key),
                1 => _ = map.remove(&key),
                _ => _ = black_box(map.contains_key(&key)),
            }
        });
    }
}

/// crossbeam-rs/crossbeam#566: a thread stays pinned while another one retires.
fn pinned() {
    beside_a_guard("a pinned thread", epoch::pin, || {
        let guard = epoch::pin();
        let object = Owned::new([1_u8; 1024]).into_shared(&guard);
        // SAFETY: no other thread knows of it.
        unsafe { guard.defer_destroy(object) };
    });
}

/// The same with a map of papaya, as in ibraheemdev/papaya#60: a thread keeps its guard while
/// another one replaces values.
fn papaya_pinned() {
    let map = papaya::HashMap::new();
    beside_a_guard("a guard of papaya", || map.guard(), || _ = map.pin().insert(7, [1_u8; 1024]));
}

/// What memory grows by while a thread has a guard and another one retires an object at a time, and
/// for how long.
fn beside_a_guard<G>(name: &str, guard: impl Fn() -> G + Sync, retire: impl Fn()) {
    let before = resident("VmRSS:");
    let (done, start) = (AtomicBool::new(false), Barrier::new(2));
    let (peak, took) = thread::scope(|scope| {
        let holds = scope.spawn(|| {
            let guard = guard();
            start.wait();
            let began = Instant::now();
            while !done.load(Acquire) && began.elapsed() < PINNED {
                thread::sleep(Duration::from_millis(1));
            }
            let peak = resident("VmHWM:");
            drop(guard);
            (peak, began.elapsed())
        });
        start.wait();
        (0..GARBAGE).for_each(|_| retire());
        done.store(true, Release);
        holds.join().expect("it only waits")
    });
    say(&format!("RSS beside {name}"), peak - before, "MiB");
    say(&format!("time beside {name}"), took.as_secs_f64() * 1e3, "ms");
}
