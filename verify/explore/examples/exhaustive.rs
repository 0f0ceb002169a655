//! Explores every scenario under both models, every engine, and bounded memory, the big ones too,
//! and says how many states each has.
//!
//! `cargo run --release -p quiescence-verify --example exhaustive` for all of them; `... -- NAME`
//! for one scenario, of any world, or one engine; `... -- NAME MUTANT` for a mutant, or an engine
//! without a step, with the trace of what it breaks.

use std::process::ExitCode;

use check::catalogue::worlds;
use check::engines::{Subject, subjects};
use check::{GRACE_PERIODS, Verdict, World};

/// States, at most: some 20 GB.
const LIMIT: usize = 60_000_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (name, without) = (arguments.next(), arguments.next());
    let mut asked = Asked { name, without, has_run: false, are_safe: true };
    asked.explore(&GRACE_PERIODS);
    subjects().iter().for_each(|subject| asked.explore_engine(subject));
    // Those without bigger scenarios are explored by the tests.
    for world in &worlds()[1..] {
        if asked.name.is_some() || !world.big.is_empty() {
            asked.explore(world);
        }
    }
    match (asked.has_run, asked.are_safe) {
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::FAILURE,
        (false, _) => {
            eprintln!("no such scenario or engine, or it has no such mutant or step");
            ExitCode::from(2)
        }
    }
}

/// What is asked for, and what came of it so far.
struct Asked {
    name: Option<String>,
    without: Option<String>,
    has_run: bool,
    are_safe: bool,
}

impl Asked {
    fn is_for(&self, name: &str) -> bool {
        self.name.as_deref().is_none_or(|asked| asked == name)
    }

    fn run(&mut self, what: &str, explore: impl FnOnce() -> Verdict) {
        let begun = std::time::Instant::now();
        let verdict = explore();
        println!("{what}: {verdict} ({:.1} s)", begun.elapsed().as_secs_f32());
        self.has_run = true;
        self.are_safe &= verdict.is_safe();
    }

    fn explore(&mut self, world: &World) {
        let mut mutants = world.faults.iter().map(|fault| fault.mutant);
        let mutant = mutants.find(|this| self.without.as_deref() == Some(this));
        if self.without.is_some() && mutant.is_none() {
            return;
        }
        for scenario in world.all() {
            let name = scenario.name();
            for model in world.models.iter().filter(|_| self.is_for(name)).collect::<Vec<_>>() {
                let explore = || scenario.explore(*model, mutant, LIMIT);
                self.run(&format!("{name} under {model:?}"), explore);
            }
        }
    }

    /// On all CPUs; without a step, on those where its harm is to be found.
    fn explore_engine(&mut self, subject: &Subject) {
        let without = self.without.as_deref();
        let known = subject.faults().find(|known| known.step.is_some() && known.step == without);
        if !self.is_for(subject.name) || without.is_some() && known.is_none() {
            return;
        }
        let all = match known {
            Some(expected) => vec![expected.on.clone()],
            None => [subject.quick.clone(), subject.exhaustive.clone()].concat(),
        };
        for on in all {
            let explore = || subject.explore(&on, known.and_then(|expected| expected.step), LIMIT);
            self.run(&format!("{} on {on:?}", subject.name), explore);
        }
    }
}
