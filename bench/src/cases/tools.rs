//! Programs in two forms: before a transformation and after it.
//!
//! They are the examples of the library, and their files are these: `chapters` are those of
//! `quiescence/examples/transformations`, `directory_cache` and `semaphores` are those of the
//! examples of these names, of which `paths` and `semop` make programs. Both forms of a program do
//! the same, which is checked: what a thread's operations return depends on its number and the seed
//! only.

mod chapters;
#[allow(dead_code, unreachable_pub, reason = "an example, of which a part is measured")]
#[path = "tools/directory_cache/cache.rs"]
mod directory_cache;
mod paths;
#[path = "tools/semaphores/semaphores.rs"]
mod semaphores;
mod semop;

use std::time::Duration;

use self::chapters::ladder::{self, Buckets, Copied, Records, Shared, Stage};
use self::chapters::log::{self, Entries};
use self::chapters::one_lock_at_a_time::{self, Containers};
pub(crate) use self::chapters::random::Random;
use self::chapters::{deleted_flag, inbox, lock_pairs, publish, shipping, when_to_stop};
use self::directory_cache::{DirectoryCache, LockedCache};
use self::paths::Tree;
use self::semaphores::{ById, OneLock};
use self::semop::System;
use super::form::Form;
use super::object::in_turn;
use crate::sample::Sample;
use crate::slices::{Cue, Scene};

/// A program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// Its name.
    pub name: &'static str,
    /// Its form before, and after.
    forms: [Make; 2],
}

/// What the threads of a program share, as what they do with it: so many operations as the thread
/// of a number, and a sum that depends on the arguments only.
type Run = dyn Fn(usize, usize, u64) -> u64 + Send + Sync;

type Make = fn() -> Box<Run>;

/// A program whose two forms have one name in modules `before` and `after`, or are made as is said.
macro_rules! program {
    ($name:literal, $module:ident::$form:ident, $size:expr) => {
        program!($name, $module::before::$form::new($size), $module::after::$form::new($size))
    };
    ($name:literal, $before:expr, $after:expr) => {
        Program { name: $name, forms: [program!($before), program!($after)] }
    };
    ($form:expr) => {
        || {
            let shared = $form;
            Box::new(move |thread, operations, seed| shared.run(thread, operations, seed))
        }
    };
}

/// All programs.
pub(crate) static PROGRAMS: &[Program] = &[
    program!("data-locking", ladder::OneLock::new(4096), Buckets::new(4096)),
    program!("hierarchical", Buckets::new(4096), Records::new(4096)),
    program!("reader-writer", Records::new(4096), Shared::new(4096)),
    program!("rcu", Shared::new(4096), Copied::new(4096)),
    program!("lock-pairs", lock_pairs::Accounts, 1024),
    program!("shipping", shipping::Records, 4096),
    program!("deleted-flag", deleted_flag::Table, 1024),
    program!("publish", publish::Table, 16),
    program!("owner-reads", inbox::Inboxes, 64),
    program!("ordered-update", log::Log, 1 << 20),
    program!("one-lock-at-a-time", one_lock_at_a_time::Tickets, 64),
    program!("when-to-stop", when_to_stop::Server, 2000),
    program!("directory-cache", Tree::of(LockedCache::new), Tree::of(DirectoryCache::new)),
    program!("semaphores", System::<OneLock>::new(), System::<ById>::new()),
];

impl Program {
    /// That of this name.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn of(name: &str) -> &'static Program {
        PROGRAMS.iter().find(|program| program.name == name).expect("it is listed")
    }

    /// Runs its form before, or that after, with so many operations in each thread, after a quarter
    /// of them as a warm-up.
    ///
    /// One measurement at a time in a process; others wait.
    ///
    /// # Panics
    /// If the program does.
    pub(crate) fn measure(
        &self,
        form: Form,
        threads: usize,
        operations: usize,
        seed: u64,
    ) -> (Sample, Vec<u64>) {
        in_turn(|| {
            let run = (self.forms[usize::from(form != Form::Before)])();
            // Helper threads start here, where they may run on every CPU.
            run(0, 16, seed);
            let scene = Scene::of(threads, |number: usize, cue: &Cue<'_>| {
                run(number, operations / 4, seed.wrapping_add(1 << 32));
                cue.work(|_| run(number, operations, seed))
            });
            let sums = scene.played.iter().map(|played| played.result).collect();
            drop(run);
            quiescence::barrier();
            (Sample::of(&scene, operations as f64), sums)
        })
    }

    /// About how many operations each thread does in so much time, by the form that does fewer.
    ///
    /// # Panics
    /// If the program does.
    pub(crate) fn operations_in(&self, threads: usize, budget: Duration) -> usize {
        const TRIAL: usize = 256;
        let operations = Form::BOTH.map(|form| {
            let (sample, _) = self.measure(form, threads, TRIAL, 0);
            let [operations_per_second, _] = sample.values[..] else { unreachable!() };
            operations_per_second / threads as f64 * budget.as_secs_f64()
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
                let [before, after] = Form::BOTH.map(|form| program.measure(form, threads, 300, 7));
                assert_eq!(before.1, after.1, "{}", program.name);
                assert_eq!(before.1.len(), threads);
                for (sample, _) in [before, after] {
                    let [operations_per_second, _] = sample.values[..] else { unreachable!() };
                    assert!(operations_per_second > 0.0, "{}: {sample:?}", program.name);
                }
            }
            let of = |operations| program.measure(Form::Before, 1, operations, 7).1;
            assert_ne!(of(300), of(200), "{}: the sum says what was done", program.name);
        }
    }
}
