//! The scenarios. [`quick`] ones run in the tests, [`exhaustive`] ones by a command of their own.

use crate::litmus;
use crate::scenario::Op::{
    Advance, AdvanceAtTick, Free, Lock, Offline, Online, Poll, QuiescentState, Read, ReadAgain,
    Register, Request, RequestInBackground, Store, Swap, Unlock, Unregister, Wait, WaitImpatiently,
};
use crate::scenario::{Op, Scenario, Thread};

const SECTION: [Op; 3] = [Lock, Read, Unlock];

fn sections(count: usize) -> Vec<Op> {
    SECTION.repeat(count)
}

/// Replaces the object once for each number, by plain stores, and frees the one before.
fn stores(objects: &[u8]) -> Vec<Op> {
    objects.iter().flat_map(|object| [Store(*object), Request, Wait, Free]).collect()
}

/// The same by swaps, for one of several updaters.
fn swaps(objects: &[u8]) -> Vec<Op> {
    objects.iter().flat_map(|object| [Swap(*object), Request, Wait, Free]).collect()
}

fn joined(parts: &[&[Op]]) -> Vec<Op> {
    parts.concat()
}

/// Those that take seconds at most.
pub fn quick() -> Vec<Scenario> {
    let mut all = thread_readers();
    all.extend(turns_of_numbers());
    all.extend(ticks());
    all.extend(qsbr_readers());
    all.extend(registration());
    all.extend(sleepers());
    all
}

/// All of them, with the outcomes that litmus tests forbid.
pub fn all() -> Vec<Scenario> {
    let litmus = litmus::forbidden().into_iter().chain(litmus::forbidden_exhaustive());
    quick().into_iter().chain(exhaustive()).chain(litmus).collect()
}

/// Finds a scenario by its name.
pub fn named(name: &str) -> Option<Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}

fn thread_readers() -> Vec<Scenario> {
    let reader = |count| Thread::reader("reader", &sections(count));
    let second = |count| Thread::reader("second reader", &sections(count));
    let updater = |objects: &[u8]| Thread::other("updater", &stores(objects));
    let nested = [Lock, Read, Lock, Unlock, ReadAgain, Unlock];
    let a = |objects: &[u8]| Thread::other("a", &swaps(objects));
    let b = |objects: &[u8]| Thread::other("b", &swaps(objects));
    let polling = Thread::other("a", &[Swap(1), Request, Poll, Free]);
    let waiting = Thread::other("b", &[Request, Wait]);
    let stopping = Thread::other("a", &[Swap(1), Request, Advance, Wait, Free]);
    let vanishing = Scenario::new(
        "vanished",
        "a driver vanishes in mid grace period and another takes over",
        vec![reader(1), a(&[1]), b(&[2])],
    );
    vec![
        Scenario::new(
            "one-reader",
            "one section, one grace period",
            vec![reader(1), updater(&[1])],
        ),
        Scenario::new("two-sections", "two of each", vec![reader(2), updater(&[1, 2])]),
        Scenario::new(
            "two-readers",
            "one holdout must not hide another",
            vec![reader(1), second(1), updater(&[1])],
        ),
        Scenario::new(
            "nested",
            "an inner unlock ends nothing",
            vec![Thread::reader("reader", &nested), updater(&[1])],
        ),
        Scenario::new(
            "nested-second",
            "a nested section after another section",
            vec![Thread::reader("reader", &joined(&[&SECTION, &nested])), updater(&[1])],
        ),
        Scenario::new(
            "two-updaters",
            "requests in mid grace period",
            vec![reader(1), a(&[1]), b(&[2])],
        ),
        Scenario::new(
            "polled",
            "a cookie polled by one who does not drive",
            vec![reader(1), polling, waiting],
        ),
        Scenario::new(
            "stopped-half-way",
            "a driver that stops where it must wait",
            vec![reader(1), stopping, b(&[2])],
        ),
        Scenario { may_vanish: Some(1), ..vanishing },
        Scenario::new("portable", "fences are instructions", vec![reader(1), updater(&[1])])
            .portable(),
        Scenario::new("portable-two", "the same, two of each", vec![reader(2), updater(&[1, 2])])
            .portable(),
        Scenario::new(
            "wrap",
            "the counters start right before their wrap",
            vec![reader(2), updater(&[1, 2])],
        )
        .before_the_wrap(),
        Scenario::new(
            "reading-updater",
            "an updater that reads, and is alone",
            vec![Thread::reader("both", &joined(&[&SECTION, &swaps(&[1]), &SECTION])), b(&[2])],
        ),
    ]
}

fn ticks() -> Vec<Scenario> {
    let reader = |name| Thread::reader(name, &sections(1));
    let polled = [Swap(1), RequestInBackground, AdvanceAtTick, Advance, AdvanceAtTick, Poll, Free];
    let joined = [Swap(1), RequestInBackground, Advance, Poll, Free];
    let waiting = Thread::other("b", &swaps(&[2]));
    let on_tick = Thread::other("a", &[Swap(1), Request, AdvanceAtTick, Wait, Free]);
    vec![
        Scenario::new(
            "background",
            "nobody waits: the grace period begins at a tick, and goes on at the next",
            vec![reader("reader"), Thread::other("a", &polled)],
        ),
        Scenario::new(
            "background-joined",
            "one that waits for its tick, and somebody who does not",
            vec![reader("reader"), Thread::other("a", &joined), waiting.clone()],
        ),
        Scenario::new(
            "on-the-tick",
            "everything on the tick",
            vec![reader("reader"), Thread::other("updater", &stores(&[1, 2]))],
        )
        .ticking(),
        Scenario::new(
            "on-the-tick-two",
            "a driver that stops at its tick, and one that goes on",
            vec![reader("reader"), on_tick, waiting],
        )
        .ticking(),
    ]
}

fn turns_of_numbers() -> Vec<Scenario> {
    let reader = Thread::reader("reader", &sections(1));
    let updater = |objects: &[u8]| Thread::other("updater", &stores(objects));
    vec![
        Scenario::new(
            "stalled-for-a-turn",
            "numbers of two bits, which come round while a reader is about to store one",
            vec![reader.clone(), updater(&[1, 2, 3, 4])],
        )
        .number_bits(2),
        Scenario::new("stalled-for-a-phase", "numbers of one bit", vec![reader, updater(&[1, 2])])
            .number_bits(1),
        Scenario::new(
            "phases",
            "numbers of one bit, more of everything",
            vec![Thread::reader("reader", &sections(2)), updater(&[1, 2, 3])],
        )
        .number_bits(1),
    ]
}

fn qsbr_readers() -> Vec<Scenario> {
    let program = [Online, Read, ReadAgain, QuiescentState, Read, Offline];
    let qsbr = Thread::qsbr("qsbr", &program);
    let updater = |objects: &[u8]| Thread::other("updater", &stores(objects));
    vec![
        Scenario::new("qsbr", "no heavy fence is needed", vec![qsbr.clone(), updater(&[1])]),
        Scenario::new("qsbr-two", "two grace periods", vec![qsbr.clone(), updater(&[1, 2])]),
        Scenario::new(
            "mixed",
            "a QSBR reader and one with light fences",
            vec![
                Thread::qsbr("qsbr", &[Online, Read, QuiescentState, Read, Offline]),
                Thread::reader("reader", &SECTION),
                updater(&[1]),
            ],
        ),
        Scenario::new(
            "qsbr-sleeper",
            "the driver sleeps until the last has announced",
            vec![
                Thread::qsbr("qsbr", &[Online, Read, QuiescentState, Read, Offline]),
                updater(&[1]),
            ],
        )
        .sleeping(),
        Scenario::new("qsbr-portable", "fences are instructions", vec![qsbr, updater(&[1])])
            .portable()
            .sleeping(),
    ]
}

fn registration() -> Vec<Scenario> {
    let whole = joined(&[&[Register], &SECTION, &[Unregister]]);
    let late = Thread::other("late", &whole);
    let updater = |objects: &[u8]| Thread::other("updater", &stores(objects));
    vec![
        Scenario::new(
            "late-reader",
            "registers while the updater may be alone",
            vec![late.clone(), updater(&[1])],
        ),
        Scenario::new(
            "late-second",
            "registers and leaves during a grace period",
            vec![Thread::reader("reader", &SECTION), late.clone(), updater(&[1])],
        ),
        Scenario::new(
            "late-twice",
            "registers again",
            vec![Thread::other("late", &joined(&[&whole, &whole])), updater(&[1, 2])],
        ),
        Scenario::new(
            "slot-handed-on",
            "a marked slot gets another owner",
            vec![
                Thread::reader("first", &[Lock, Read, Unlock, Unregister]),
                Thread::other("late", &[Register]),
                updater(&[1]),
            ],
        )
        .sleeping(),
    ]
}

fn sleepers() -> Vec<Scenario> {
    let updater = |objects: &[u8]| Thread::other("updater", &stores(objects));
    vec![
        Scenario::new(
            "sleeper",
            "the driver sleeps, the holdout wakes it",
            vec![Thread::reader("reader", &sections(1)), updater(&[1])],
        )
        .sleeping(),
        Scenario::new(
            "sleeper-two",
            "two sections",
            vec![Thread::reader("reader", &sections(2)), updater(&[1])],
        )
        .sleeping(),
        Scenario::new(
            "portable-sleeper",
            "fences are instructions",
            vec![Thread::reader("reader", &sections(1)), updater(&[1])],
        )
        .portable()
        .sleeping(),
        Scenario::new(
            "two-holdouts",
            "the last of two holdouts wakes the driver",
            vec![
                Thread::reader("reader", &SECTION),
                Thread::reader("second reader", &SECTION),
                updater(&[1]),
            ],
        )
        .sleeping(),
        Scenario::new(
            "sleeping-updaters",
            "one sleeps for the reader, one for the driver",
            vec![
                Thread::reader("reader", &SECTION),
                Thread::other("a", &swaps(&[1])),
                Thread::other("b", &swaps(&[2])),
            ],
        )
        .sleeping(),
        Scenario::new(
            "hand-over",
            "a waiter takes the place of a driver, wherever that stands without a lock",
            vec![
                Thread::reader("reader", &SECTION),
                Thread::other("driver", &[Request, Wait]),
                Thread::other("waiter", &[Swap(1), Request, WaitImpatiently, Free]),
            ],
        )
        .sleeping(),
    ]
}

/// Bigger ones: minutes, and some gigabytes of memory.
pub fn exhaustive() -> Vec<Scenario> {
    let reader = |name, count| Thread::reader(name, &sections(count));
    let updater = |objects: &[u8]| Thread::other("updater", &stores(objects));
    vec![
        Scenario::new(
            "three-grace-periods",
            "and three sections",
            vec![reader("reader", 3), updater(&[1, 2, 3])],
        ),
        Scenario::new(
            "two-readers-two",
            "two readers, two grace periods",
            vec![reader("reader", 1), reader("second reader", 1), updater(&[1, 2])],
        ),
        Scenario::new(
            "two-updaters-two-sections",
            "more of everything",
            vec![
                reader("reader", 2),
                Thread::other("a", &swaps(&[1])),
                Thread::other("b", &swaps(&[2])),
            ],
        ),
        Scenario::new(
            "two-readers-two-updaters",
            "two of each thread",
            vec![
                reader("reader", 1),
                reader("second reader", 1),
                Thread::other("a", &swaps(&[1])),
                Thread::other("b", &swaps(&[2])),
            ],
        ),
        Scenario::new(
            "two-bits-more",
            "two sections over a turn of two-bit numbers",
            vec![reader("reader", 2), updater(&[1, 2, 3, 4, 5])],
        )
        .number_bits(2),
        Scenario::new(
            "sleeper-two-two",
            "two sections, two grace periods, asleep",
            vec![reader("reader", 2), updater(&[1, 2])],
        )
        .sleeping(),
        Scenario::new(
            "slot-handed-on-and-used",
            "a marked slot gets another owner, who reads",
            vec![
                Thread::reader("first", &joined(&[&SECTION, &[Unregister]])),
                Thread::other("late", &[Register, Lock, Read, Unlock]),
                updater(&[1]),
            ],
        )
        .sleeping(),
        Scenario::new(
            "hand-over-two",
            "both free what they have replaced",
            vec![
                reader("reader", 1),
                Thread::other("driver", &swaps(&[1])),
                Thread::other("waiter", &[Swap(2), Request, WaitImpatiently, Free]),
            ],
        )
        .sleeping(),
        Scenario::new(
            "portable-two-holdouts",
            "fences are instructions",
            vec![reader("reader", 1), reader("second reader", 1), updater(&[1])],
        )
        .portable()
        .sleeping(),
    ]
}
