//! Every exported function of liburcu, used by programs in C and C++: compiled against our headers
//! and against Debian's, with readers inlined and, for the first library of each, not. Programs
//! that are about readers and publication are compiled both ways for each library. Each is run with
//! our libraries and with Debian's: liburcu 0.13, and 0.15 where `QUIESCENCE_TRIXIE_ROOT` names a
//! root of Debian 13.
//!
//! The programs are in `tests/programs`; which there are, and what Debian's library cannot do, is
//! in `table.toml`. What holds with Debian's is what liburcu's users rely on; so a program that
//! passes there and fails with ours shows a fault of ours. Needs gcc; without Debian's liburcu-dev
//! there is no such comparison, and without g++ no program in C++.

mod build;
mod coverage;
mod execute;
mod table;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use execute::Outcome;
use xtask::needs;

use crate::program::{Version, Whose};

/// At most so many programs are compiled or run at once: most of them are several threads.
const WORKERS: usize = 3;

/// Does `work` for each of `jobs`, on a few threads; the results come back in the jobs' order.
fn in_parallel<J: Sync, A: Send>(jobs: &[J], work: impl Fn(&J) -> A + Sync) -> Vec<A> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    // Relaxed: each number is taken once; nothing else travels with it.
                    let number = next.fetch_add(1, Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    let answer = work(job);
                    answers.lock().unwrap().push((number, answer));
                }
            });
        }
    });
    let mut answers = answers.into_inner().unwrap();
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[test]
fn every_program_runs_with_every_library() {
    needs::or_return!();
    let debians = needs::met_for("with Debian's headers and libraries", &["Liburcu"]);
    let cpp = needs::met_for("programs in C++", &["Gxx"]);
    let debian_13s = needs::met_for("with Debian 13's headers and libraries", &["Liburcu15"]);
    let there = [(Version::V13, debians), (Version::V15, debian_13s)];
    let there = there.into_iter().filter_map(|(theirs, is_there)| is_there.then_some(theirs));
    let there: Vec<_> = there.collect();
    let chosen = std::env::var("PROGRAMS").unwrap_or_default();
    let jobs: Vec<_> = table::builds()
        .into_iter()
        .filter(|job| job.program.source.contains(&chosen))
        .filter(|job| debians || job.headers != Whose::Debians)
        .filter(|job| debian_13s || job.headers != Whose::Debian13s)
        .filter(|job| cpp || !job.program.source.ends_with(".cpp"))
        .collect();
    assert!(!jobs.is_empty(), "PROGRAMS={chosen} names no program");
    let done: Vec<(Result<PathBuf, String>, Vec<Outcome>)> = in_parallel(&jobs, |job| {
        let compiled = build::compile(job);
        let outcomes = compiled.as_deref().ok();
        let outcomes = outcomes.map(|path| execute::run_with_each_library(&there, job, path));
        (compiled, outcomes.unwrap_or_default())
    });

    let mut failures = Vec::new();
    println!("{}", execute::HEADING);
    for (job, (compiled, outcomes)) in jobs.iter().zip(&done) {
        println!("{}", execute::line(job, compiled.is_ok(), outcomes));
        if let Err(said) = compiled {
            failures.push(format!("{job} does not compile:\n{said}"));
        }
        failures.extend(outcomes.iter().filter_map(|outcome| {
            let library = outcome.library;
            outcome.failure.as_ref().map(|said| format!("{job} with {library:?}: {said}"))
        }));
    }
    let runs: usize = done.iter().map(|(_, outcomes)| outcomes.len()).sum();
    let cases: usize = done.iter().flat_map(|(_, outcomes)| outcomes).map(|one| one.cases).sum();
    println!("{} programs, {runs} runs, {cases} cases", jobs.len());
    for theirs in there.into_iter().filter(|_| chosen.is_empty() && cpp) {
        let used = jobs.iter().zip(&done);
        let used = used.filter_map(|(job, (compiled, _))| Some((job, compiled.as_deref().ok()?)));
        let missing = coverage::not_used(theirs, used);
        if !missing.is_empty() {
            failures.push(format!("no program uses, of {theirs:?}:\n{}", missing.join("\n")));
        }
    }
    assert!(failures.is_empty(), "{} failed:\n\n{}", failures.len(), failures.join("\n\n"));
}
