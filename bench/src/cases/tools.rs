//! Programs in two forms: before a transformation and after it.
//!
//! They are the examples of the library, and their files are these: `chapters` are those of
//! `quiescence/examples/transformations`, `directory_cache` and `semaphores` are those of the
//! examples of these names, of which `paths` and `semop` make programs. Both forms of a program do
//! the same, which is checked: what a thread's operations return depends on its number and the seed
//! only.

mod chapters;
#[allow(dead_code, unreachable_pub, reason = "an example, of which a part is measured")]
mod directory_cache;
mod paths;
mod semaphores;
mod semop;

use std::thread;
use std::time::Duration;

use self::chapters::{
    data_locking, deleted_flag, lock_pairs, publish, rcu, shipping, when_to_stop,
};
use self::paths::Tree;
use self::semaphores::{ById, OneLock};
use self::semop::System;
use super::object::Turn;
use crate::slices::{Cue, Scene, Speed};

/// A program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What it does, and what is changed.
    pub title: &'static str,
    /// Its form before, and after.
    forms: [Make; 2],
    /// What was measured of such a pair elsewhere.
    pub published: Option<&'static Published>,
}

/// A published pair of figures.
#[derive(Debug)]
pub struct Published {
    /// The machine it was measured on.
    pub machine: &'static str,
    /// Where it is written.
    pub source: &'static str,
    /// Seconds that the program took, before and after.
    pub seconds: [f64; 2],
}

/// The semaphores of 2003.
static SEMOP_2003: Published = Published {
    machine: "8-CPU 700 MHz Pentium III",
    source: "Arcangeli, Cao, McKenney, Sarma: Using Read-Copy-Update Techniques for System V IPC \
             in the Linux 2.5 Kernel, USENIX 2003",
    // The means of two runs each.
    seconds: [515.25, 46.7],
};

/// One of the two forms of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// Before the transformation.
    Before,
    /// After it.
    After,
}

impl Form {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Before, Self::After];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// What the threads of a program share, as what they do with it: so many operations as the thread
/// of a number, and a sum that depends on the arguments only.
type Run = dyn Fn(usize, usize, u64) -> u64 + Send + Sync;

type Make = fn() -> Box<Run>;

/// A program whose two forms have one name in modules `before` and `after`, or are made as is said.
macro_rules! program {
    ($name:literal, $title:literal, $module:ident::$form:ident, $size:expr) => {
        program!(
            $name,
            $title,
            $module::before::$form::new($size),
            $module::after::$form::new($size)
        )
    };
    ($name:literal, $title:literal, $before:expr, $after:expr) => {
        Program {
            name: $name,
            title: $title,
            forms: [program!($before), program!($after)],
            published: None,
        }
    };
    ($form:expr) => {
        || {
            let shared = $form;
            Box::new(move |thread, operations, seed| shared.run(thread, operations, seed))
        }
    };
}

/// All programs.
pub static PROGRAMS: &[Program] = &[
    program!(
        "data-locking",
        "counters in a hash table: one lock, a lock of each bucket",
        data_locking::Table,
        4096
    ),
    program!(
        "lock-pairs",
        "transfers between accounts: one lock, an ordered pair of locks",
        lock_pairs::Accounts,
        1024
    ),
    program!(
        "shipping",
        "changes of a record a CPU: a lock of each, functions shipped to its owner",
        shipping::Records,
        4096
    ),
    program!("rcu", "routes that are looked up: a reader-writer lock, RCU", rcu::Table, 1024),
    program!(
        "deleted-flag",
        "sessions that are closed: a reader-writer lock held meanwhile, RCU and a deleted flag",
        deleted_flag::Table,
        1024
    ),
    program!(
        "publish",
        "sixteen fields read together: a lock, a copy that is published",
        publish::Table,
        16
    ),
    program!(
        "when-to-stop",
        "requests of 2,000 steps that read a setting: a reader-writer lock, RCU",
        when_to_stop::Server,
        2000
    ),
    program!(
        "directory-cache",
        "paths of four names looked up, and renames: one lock, RCU and a sequence count",
        Tree::locked(),
        Tree::cached()
    ),
    Program {
        published: Some(&SEMOP_2003),
        ..program!(
            "semaphores",
            "semop on semaphores of each thread's own: one lock for all sets, an id table",
            System::<OneLock>::new(),
            System::<ById>::new()
        )
    },
];

/// What [`Program::measure`] saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// How fast its threads were.
    pub speed: Speed,
    /// What the operations of each thread returned: of both forms the same.
    pub sums: Vec<u64>,
}

impl Program {
    /// Runs one form, with so many operations in each thread, after a quarter of them as a warm-up.
    ///
    /// One measurement at a time in a process; others wait.
    ///
    /// # Panics
    /// If the program does.
    pub fn measure(&self, form: Form, threads: usize, operations: usize, seed: u64) -> Seen {
        let _turn = Turn::wait();
        thread::scope(|scope| {
            let measured = scope.spawn(|| {
                let run = (self.forms[form as usize])();
                // Helper threads start here, where they may run on every CPU.
                run(0, 16, seed);
                let scene = Scene::of(threads, |number: usize, cue: &Cue<'_>| {
                    run(number, operations / 4, seed.wrapping_add(1 << 32));
                    cue.work(|_| run(number, operations, seed))
                });
                let sums = scene.played.iter().map(|played| played.result).collect();
                drop(run);
                quiescence::barrier();
                Seen { speed: scene.speed(operations as f64), sums }
            });
            measured.join().expect("a program does not panic")
        })
    }

    /// About how many operations each thread does in so much time, by the form that does fewer.
    ///
    /// # Panics
    /// If the program does.
    pub fn operations_in(&self, threads: usize, budget: Duration) -> usize {
        const TRIAL: usize = 256;
        let operations = Form::ALL.map(|form| {
            let speed = self.measure(form, threads, TRIAL, 0).speed;
            speed.operations_per_second / threads as f64 * budget.as_secs_f64()
        });
        (operations[0].min(operations[1]) as usize).max(TRIAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_every_program_do_the_same_in_every_number_of_threads() {
        for program in PROGRAMS {
            for threads in [1, 2, 3] {
                let [before, after] = Form::ALL.map(|form| program.measure(form, threads, 300, 7));
                assert_eq!(before.sums, after.sums, "{}", program.name);
                assert_eq!(before.sums.len(), threads);
                for seen in [before, after] {
                    assert!(seen.speed.operations_per_second > 0.0, "{}: {seen:?}", program.name);
                }
            }
            let of = |operations| program.measure(Form::Before, 1, operations, 7).sums;
            assert_ne!(of(300), of(200), "{}: the sum says what was done", program.name);
        }
    }

    #[test]
    fn what_was_published_is_what_the_reference_says() {
        let published: Vec<_> = PROGRAMS.iter().filter_map(|p| p.published).collect();
        assert_eq!(published.len(), 1);
        let [before, after] = published[0].seconds;
        assert_eq!((before / after * 10.0).round(), 110.0, "eleven times as fast");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PROGRAMS.len());
    }
}
